package replay_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/kubectl/replay"
)

var update = flag.Bool("update", false, "write the golden files")

// recorded returns a record of testdata, which "decisions -o json" has written beside a real cluster. Its facts get the versions of this
// program: a release that only adds fields need not record again.
func recorded(t *testing.T, name string) replay.Record {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events.Facts() {
		text = regexp.MustCompile(`fact\.`+string(e.Type())+`\.v\d+"`).ReplaceAll(text, []byte("fact."+e.Type().Versioned()+`"`))
	}
	r, err := replay.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	r.State = nil
	return r
}

// alter changes the payload of the facts that hold a text.
func alter(r *replay.Record, old, now string) {
	for i, f := range r.Facts {
		r.Facts[i].Fact = json.RawMessage(strings.ReplaceAll(string(f.Fact), old, now))
	}
}

func withState(t *testing.T, r *replay.Record) {
	t.Helper()
	folded, err := replay.Fold(*r)
	if err != nil {
		t.Fatal(err)
	}
	r.State = &replay.State{Revision: 1795442198285152, Stored: r.Facts[len(r.Facts)-1].Stored, Data: folded.State}
}

func isPod(f replay.Fact) bool { return bytes.Contains(f.Fact, []byte("dev.jobstream.fact.Pod")) }

// golden are records and what becomes of them; "decisions" in the name is for that form, any other is a transcript.
var golden = map[string]struct {
	record string
	change func(*testing.T, *replay.Record)
}{
	"a_job_that_retries":           {"retries", nil},
	"a_job_that_retries_decisions": {"retries", withState},
	"an_indexed_job_that_fails":    {"fails", nil},
	// Facts joined turns: the reconciler decided on them between the writes of the status that later facts show.
	"facts_join_turns":            {"many", nil},
	"a_schedule":                  {"tick", nil},
	"a_schedule_decisions":        {"tick", withState},
	"nothing_is_stored_decisions": {"fails", func(_ *testing.T, r *replay.Record) { r.Facts = nil }},
	// The API server refuses the Pods: nothing but the Job is ever seen.
	"no_pod_is_created_decisions": {"fails", func(t *testing.T, r *replay.Record) {
		r.Facts = slices.DeleteFunc(r.Facts[:3:3], isPod)
		r.Collected = r.Facts[0].Stored.Add(3 * time.Hour)
		withState(t, r)
	}},
	// The stream was full, and its oldest facts were dropped.
	"begins_in_the_middle": {"retries", func(_ *testing.T, r *replay.Record) { r.Facts = r.Facts[5:] }},
	// The reconciler stood still for four seconds before it created the Pods, and no fact shows them before they end.
	"the_reconciler_stood_still": {"fails", func(_ *testing.T, r *replay.Record) {
		r.Facts = slices.Delete(r.Facts, 1, 5)
		for i := range r.Facts[1:] {
			f := &r.Facts[1+i]
			f.Stored = f.Stored.Add(4 * time.Second)
			if isPod(*f) {
				f.Fact = json.RawMessage(strings.NewReplacer("14:01:54", "14:01:58", "14:01:55", "14:01:59").Replace(string(f.Fact)))
			}
		}
		r.Collected = r.Collected.Add(4 * time.Second)
	}},
	// Triggers were upgraded before the plugin, and a foreign program has published on the subject.
	"facts_that_cannot_be_read": {"retries", func(_ *testing.T, r *replay.Record) {
		r.Facts[1].Fact = json.RawMessage(strings.ReplaceAll(string(r.Facts[1].Fact), "PodObserved.v1", "PodObserved.v9"))
		r.Facts[3] = replay.NewFact(r.Facts[3].Sequence, r.Facts[3].Stored, []byte("\x1b]0;mine\a\xff not JSON"))
		r.Facts[4].Fact = json.RawMessage(strings.ReplaceAll(string(r.Facts[4].Fact), string(r.UID), "another-uid"))
	}},
	// Names and reasons that a user has chosen do not steer the terminal, and no line of them looks like one of ours.
	"hostile_names_decisions": {"fails", func(_ *testing.T, r *replay.Record) {
		alter(r, `"reason": "Error"`, `"reason": "\u001b[2J\n----\nDeleteJob"`)
		alter(r, "fails-0-", `fails\u001b[31m\u202e\n> DeleteJob-0-`)
		r.Name = "fails\x1b[2J\n> DeleteJob"
	}},
}

// TestGolden: records of real Jobs, and records with what goes wrong, as users read them. Rewrite the files with -update.
func TestGolden(t *testing.T) {
	version := regexp.MustCompile(`version \d+ of the function`)
	for name, tt := range golden {
		t.Run(name, func(t *testing.T) {
			r := recorded(t, tt.record)
			if tt.change != nil {
				tt.change(t, &r)
			}
			folded, err := replay.Fold(r)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if strings.HasSuffix(name, "decisions") {
				err = folded.WriteDecisions(&out, 20)
			} else {
				err = folded.WriteScript(&out)
			}
			if err != nil {
				t.Fatal(err)
			}
			text := version.ReplaceAllString(out.String(), "version N of the function")
			text = regexp.MustCompile(`, \d+ bytes, `).ReplaceAllString(text, ", N bytes, ")
			if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' || r == '\u202e' }) {
				t.Errorf("it would steer a terminal: %q", text)
			}
			file := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if text != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", text, want)
			}
		})
	}
}

// TestTranscriptsHaveTheFormOfScripts: the parser of the scripts in functions/*/testdata reads a transcript, turn by turn.
func TestTranscriptsHaveTheFormOfScripts(t *testing.T) {
	for _, name := range []string{"a_job_that_retries", "an_indexed_job_that_fails", "a_schedule"} {
		turns := 0
		datadriven.RunTest(t, filepath.Join("testdata", name+".txt"), func(_ *testing.T, d *datadriven.TestData) string {
			turns++
			return d.Expected
		})
		if turns < 5 {
			t.Errorf("%s has %d turns", name, turns)
		}
	}
}

// TestReplayIsDeterministic: a record gives the same transcript each time, on any machine.
func TestReplayIsDeterministic(t *testing.T) {
	r := recorded(t, "fails")
	r.Facts = r.Facts[3:] // an inventory of several Pods
	var first bytes.Buffer
	for range 20 {
		var out bytes.Buffer
		folded, err := replay.Fold(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := folded.WriteScript(&out); err != nil {
			t.Fatal(err)
		}
		if first.Len() == 0 {
			first = out
		}
		if out.String() != first.String() {
			t.Fatalf("got:\n%s\nand:\n%s", out.String(), first.String())
		}
	}
}

// TestNextOfAnotherVersion: a state that another version of the function has written is not guessed at.
func TestNextOfAnotherVersion(t *testing.T) {
	r := recorded(t, "retries")
	for name, tt := range map[string]struct {
		data []byte
		says string
	}{
		"an older one": {[]byte{0x82, 0x01, 0xa0}, "version 1 of the function has written it, and this plugin has version "},
		"a newer one":  {[]byte{0x82, 0x19, 0x27, 0x0f, 0xa0}, "version 9999 of the function has written it, and this plugin has version "},
		"no state":     {[]byte("\x1b[2J"), "decode state: "},
	} {
		r.State = &replay.State{Revision: 1, Stored: r.Collected, Data: tt.data}
		if effects, ok, err := replay.Next(r); !ok || err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, %v", name, effects, err)
		}
	}
}

// TestAnOlderFactDoesNotStray: what another trigger publishes late shows an older status, to which a decision had led.
func TestAnOlderFactDoesNotStray(t *testing.T) {
	r := recorded(t, "many")
	jobs := slices.DeleteFunc(slices.Clone(r.Facts), func(f replay.Fact) bool { return !bytes.Contains(f.Fact, []byte("dev.jobstream.fact.JobObserved")) })
	late := jobs[len(jobs)/2]
	last := r.Facts[len(r.Facts)-1]
	late.Sequence, late.Stored = last.Sequence+1, last.Stored
	r.Facts = append(r.Facts, late)
	folded, err := replay.Fold(r)
	if err != nil {
		t.Fatal(err)
	}
	if len(jobs) < 3 || !folded.Strayed.IsZero() {
		t.Errorf("of %d observations of the Job, one that came late made the transcript stray at %v", len(jobs), folded.Strayed)
	}
}
