package replay_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/internal/kubectl/replay"
	"github.com/jobstream/jobstream/internal/sim"
	"github.com/jobstream/jobstream/internal/sim/script"
)

// hidden are the commands of scripts that no fact shows: what a webhook refuses, what is lost, and what a dead reconciler does not do.
var hidden = []string{"crash", "unanswered", "refuse", "quota", "watch", "relist", "forget", "repeat", "late", "deliver", "unread", "redelivery", "too-large", "crowd", "announcements", "values", "lingering"}

// TestReplayOfEveryScript: the facts of a script, stored and folded again, give the decisions of the script, although the answers of the
// API server are not stored. This holds for each script without something that no fact can show, and also without the facts that a trigger
// does not publish.
func TestReplayOfEveryScript(t *testing.T) {
	for _, c := range []struct {
		name    string
		sparing bool
		least   int
	}{{"all observations", false, 54}, {"as published", true, 54 - len(unshown)}} {
		t.Run(c.name, func(t *testing.T) { replayScripts(t, c.sparing, c.least) })
	}
}

func replayScripts(t *testing.T, sparing bool, least int) {
	const dir = "../../../functions/job/testdata"
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	equal := 0
	for _, file := range files {
		t.Run(file.Name(), func(t *testing.T) {
			r, want, factsAlone := playScript(t, filepath.Join(dir, file.Name()), sparing)
			got, err := replay.Fold(*r)
			if err != nil {
				t.Fatal(err)
			}
			have := decisions(got)
			if factsAlone && !sparing && !got.Strayed.IsZero() {
				t.Errorf("it strays at %v", got.Strayed)
			}
			if !factsAlone { // it need not be the same, but it comes to an end
				for _, turn := range got.Turns {
					if turn.Failed != "" {
						t.Errorf("at %v: %s", turn.At, turn.Failed)
					}
				}
				return
			}
			if sparing { // the version of a Pod that was just created is in no fact
				have, want = withoutVersions(have), withoutVersions(want)
			}
			if same := slices.Equal(have, want); !same && sparing && slices.Contains(unshown, file.Name()) {
				return
			} else if !same {
				t.Errorf("folded again:\n%s\n\nin the script:\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
				return
			}
			equal++
		})
	}
	t.Logf("%d of %d scripts consist of facts alone, and are decided again in the same way", equal, len(files))
	if equal < least {
		t.Errorf("only %d scripts were folded again", equal)
	}
}

// unshown are scripts in which something happens to a Pod that no published fact shows: a Pod that was created and deleted before it ran, or
// that has ended without its finalizer.
var unshown = []string{"delayed_index_does_not_hold_up_others.txt", "deleted_job.txt", "failed_pods_limit.txt", "scale_down.txt"}

// withoutVersions replaces the versions of Pods.
func withoutVersions(effects []string) (all []string) {
	for _, e := range effects {
		if strings.HasPrefix(e, "DeletePod") {
			e = version.ReplaceAllString(e, "@?")
		}
		all = append(all, e)
	}
	return all
}

var version = regexp.MustCompile(`@[0-9]+`)

// decisions returns the effects without timers.
func decisions(t replay.Transcript) (all []string) {
	for _, turn := range t.Turns {
		for _, s := range turn.Steps {
			if s.Effect.Kind() != "SetTimer" {
				all = append(all, s.Effect.String())
			}
		}
	}
	return all
}

// playScript plays a script, and returns the facts in it as a record, and its decisions. factsAlone reports whether facts show all that
// happens in it.
func playScript(t *testing.T, path string, sparing bool) (r *replay.Record, effects []string, factsAlone bool) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	factsAlone = true
	for line := range strings.Lines(string(text)) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		factsAlone = factsAlone && !slices.Contains(hidden, word)
	}
	r = &replay.Record{APIVersion: replay.Version, Cluster: "default", Function: "job", Namespace: "default", Name: "pi", Flags: replay.Flags{TTLAfterFinished: true}}
	s := script.New()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s.Seen = func(at time.Time, e events.Event) {
		if r.UID == "" {
			r.UID = sim.Key(uidOf(e)).UID
			r.Namespace = sim.Key(uidOf(e)).Namespace
		}
		if p, is := e.(events.PodObserved); is && sparing && job.Redundant(p.Pod, at.Sub(p.Pod.Created)) {
			return
		}
		payload, err := events.Encode(events.Fact{Cluster: "default", Key: r.Key(), Event: e})
		if err != nil {
			t.Fatal(err)
		}
		n := uint64(len(r.Facts) + 1)
		r.Facts = append(r.Facts, replay.NewFact(n, at, payload))
	}
	datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
		out := s.Play(t, d)
		r.Flags.EventPods = r.Flags.EventPods || d.Cmd == "announce-pods"
		if d.Cmd == "status" || d.Cmd == "conditions" || d.Cmd == "reports" {
			return out
		}
		for line := range strings.Lines(out) {
			line = strings.TrimSpace(line)
			if line != "(nothing)" && !strings.HasPrefix(line, "SetTimer") && !strings.HasSuffix(line, "the timer fires") {
				effects = append(effects, line)
			}
		}
		if d.Cmd == "advance" {
			by, err := time.ParseDuration(d.CmdArgs[0].Key)
			if err != nil {
				t.Fatal(err)
			}
			now = now.Add(by)
		}
		return out
	})
	r.Collected = now
	return r, effects, factsAlone
}

func uidOf(e events.Event) types.UID {
	if j, is := e.(events.JobObserved); is {
		return j.Job.UID
	}
	panic(fmt.Sprintf("a script begins with %T", e))
}
