package events_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/events"
)

const contract = "../docs/events.md"

// publicSamples returns one of each form of a public event.
func publicSamples() map[string]events.Public {
	nightly := events.Reference{Namespace: "shop", Name: "nightly.report", UID: uid}
	run := events.Reference{Namespace: "shop", Name: "nightly.report-" + events.NominalHash(at(0)), UID: "8d0c3a52-77a4-4a38-9c51-3f6b1f0a2c11"}
	owner := &events.RunOwner{ScheduledJob: nightly, Nominal: at(0)}
	three, labels := int32(3), map[string]string{"team": "finance"}
	return map[string]events.Public{
		"TickDecided": events.TickDecided{ScheduledJob: nightly, Verdict: events.Started, Nominal: at(0), Count: 1,
			Job: &events.Reference{Namespace: "shop", Name: "nightly.report-" + events.NominalHash(at(0)), UID: "8d0c3a52-77a4-4a38-9c51-3f6b1f0a2c11"}},
		"TickDecidedRange": events.TickDecided{ScheduledJob: nightly, Verdict: events.Missed, Reason: "Superseded", Message: "a later time had come",
			Nominal: at(0), Until: at(0).Add(2 * time.Hour), Count: 3},
		"JobStarted": events.JobStarted{Job: run, Created: at(0), Start: at(1), Parallelism: 2, Completions: &three, CompletionMode: "Indexed",
			Owner: owner, TemplateHash: "5fd0a1c34b", ManagedBy: "jobstream.dev/reconciler", Labels: labels},
		"JobFinished": events.JobFinished{Job: run, Result: events.JobFailed, Reason: "FailedIndexes", Message: "Job has failed indexes",
			Succeeded: 2, Failed: 7, Completions: &three, CompletedIndexes: "0,2", FailedIndexes: "1", Created: at(0), Start: at(1), End: at(58), DurationSeconds: 57,
			FailedIndexExits: []events.IndexExit{{Index: 1, ExitCode: 137, Reason: "OOMKilled"}},
			FailedValues:     &events.FailedValues{ConfigMap: "shops", Indexes: []events.IndexValues{{Index: 1, Values: map[string]string{"SHOP": "Paris"}}}},
			LastFailure:      &events.PodFailure{Pod: "nightly.report-frwhlprcx-1-d52jl", Index: new(1), Node: "node-7", Container: "main", ExitCode: 137, Reason: "OOMKilled", Time: at(57)},
			Owner:            owner, TemplateHash: "5fd0a1c34b", ManagedBy: "jobstream.dev/reconciler", Labels: labels},
		"PodFinished": events.PodFinished{Job: run, Pod: events.Reference{Namespace: "shop", Name: "nightly.report-frwhlprcx-1-d52jl", UID: "0b7e5d0a-5c1c-4d0e-8f6f-2f1f0f5a9a11"},
			Result: events.PodFailed, Index: new(1), Container: &events.ContainerEnd{Name: "main", ExitCode: 137, Reason: "OOMKilled"}, Node: "node-7",
			Start: at(2), End: at(9), DurationSeconds: 7, Owner: owner},
		"JobFinishedPlain": events.JobFinished{Job: events.Reference{Namespace: "shop", Name: "pi", UID: uid}, Result: events.JobSucceeded,
			Reason: "CompletionsReached", Message: "Reached expected number of succeeded pods", Succeeded: 1, Completions: new(int32(1)),
			Created: at(0), Start: at(1), End: at(9), DurationSeconds: 8, TemplateHash: "e07b9920c8", ManagedBy: "jobstream.dev/reconciler"},
	}
}

func decodePublic(t *testing.T, cluster string, p events.Public) event.Event {
	t.Helper()
	b, err := events.EncodePublic(cluster, p)
	if err != nil {
		t.Fatal(err)
	}
	var e event.Event
	if err := json.Unmarshal(b, &e); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	if err := e.Validate(); err != nil {
		t.Fatalf("%s is no CloudEvent: %v", b, err)
	}
	return e
}

// TestPublicGoldenSamples pins the wire form of every public event, which docs/events.md shows, too. A change breaks subscribers:
// it takes a new version of the type, not -rewrite, unless it is an addition.
func TestPublicGoldenSamples(t *testing.T) {
	document, err := os.ReadFile(contract)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range publicSamples() {
		t.Run(name, func(t *testing.T) {
			got, err := events.EncodePublic("prod.eu", p)
			if err != nil {
				t.Fatal(err)
			}
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, got, "", "  "); err != nil {
				t.Fatal(err)
			}
			pretty.WriteByte('\n')
			path := filepath.Join("testdata", name+".json")
			if *rewrite {
				if err := os.WriteFile(path, pretty.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(pretty.Bytes(), want) {
				t.Errorf("the public form of %s has changed, which subscribers rely on\ngot:\n%s\nwant:\n%s", name, pretty.Bytes(), want)
			}
			if !bytes.Contains(document, want) {
				t.Errorf("%s does not show %s as it is", contract, path)
			}
			if back, err := events.DecodePublic(got); err != nil || !reflect.DeepEqual(back, p) {
				t.Errorf("it comes back as %+v, %v", back, err)
			}
		})
	}
}

// TestPublicAttributes: each attribute is as in the contract.
func TestPublicAttributes(t *testing.T) {
	e := decodePublic(t, "prod.eu", publicSamples()["TickDecided"])
	for attribute, tt := range map[string]struct{ got, want any }{
		"id":              {e.ID(), uid + "/" + events.NominalHash(at(0))},
		"source":          {e.Source(), "/clusters/prod=2Eeu/namespaces/shop/scheduledjobs/nightly.report"},
		"type":            {e.Type(), "dev.jobstream.schedule.tick.v1"},
		"subject":         {e.Subject(), "nightly.report"},
		"time":            {e.Time(), at(0)},
		"datacontenttype": {e.DataContentType(), "application/json"},
		"partitionkey":    {e.Extensions()["partitionkey"], uid},
		"traceparent":     {e.Extensions()["traceparent"], "00-0a152a7b2d9c6f42aa74f4d33ee844e4-4f23c7a44b95ecc3-01"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s is %v, want %v", attribute, tt.got, tt.want)
		}
	}
	if n := len(e.Extensions()); n != 2 {
		t.Errorf("%d extensions: %v", n, e.Extensions())
	}
}

// TestPublicIDs: the same times are the same event, whatever the verdict and the other fields.
func TestPublicIDs(t *testing.T) {
	id := func(change func(*events.TickDecided)) string {
		e := events.TickDecided{ScheduledJob: events.Reference{Namespace: "shop", Name: "n", UID: uid}, Verdict: events.Started, Nominal: at(0), Count: 1}
		change(&e)
		return events.PublicID(e)
	}
	same := id(func(*events.TickDecided) {})
	for what, change := range map[string]func(*events.TickDecided){
		"verdict": func(e *events.TickDecided) { e.Verdict, e.Reason, e.Message = events.Skipped, "Overlap", "m" },
		"job":     func(e *events.TickDecided) { e.Job = &events.Reference{Name: "j"} },
		"zone":    func(e *events.TickDecided) { e.Nominal = e.Nominal.In(time.FixedZone("east", 3600)) },
	} {
		if got := id(change); got != same {
			t.Errorf("another %s: %s, want %s", what, got, same)
		}
	}
	for what, change := range map[string]func(*events.TickDecided){
		"time":   func(e *events.TickDecided) { e.Nominal = at(1) },
		"range":  func(e *events.TickDecided) { e.Until = at(1) },
		"object": func(e *events.TickDecided) { e.ScheduledJob.UID = "other" },
	} {
		if got := id(change); got == same {
			t.Errorf("another %s has the same id", what)
		}
	}
}

// TestPublicSubjects: eight parts whatever the names contain, and only characters that a subject allows.
func TestPublicSubjects(t *testing.T) {
	for want, e := range map[string]events.TickDecided{
		"jobstream.events.prod=2Eeu.shop.schedule.tick.started.nightly":    {ScheduledJob: events.Reference{Namespace: "shop", Name: "nightly"}, Verdict: events.Started},
		"jobstream.events.prod=2Eeu.shop.schedule.tick.failed.a=2Eb-c=2Ed": {ScheduledJob: events.Reference{Namespace: "shop", Name: "a.b-c.d"}, Verdict: events.NotCreated},
	} {
		if got := events.PublicSubject("prod.eu", e); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		name := legalName().Draw(t, "name")
		got := events.PublicSubject(rapid.StringN(1, 20, -1).Draw(t, "cluster"), events.TickDecided{
			ScheduledJob: events.Reference{Namespace: "shop", Name: name, UID: types.UID(uid)}, Verdict: events.Missed})
		parts := strings.Split(got, ".")
		if len(parts) != 8 || strings.ContainsAny(got, "*> \t\r\n") || parts[6] != "missed" {
			t.Fatalf("%q", got)
		}
		if back, err := events.ParseToken(parts[7]); err != nil || back != name {
			t.Fatalf("%q comes back as %q, %v", name, back, err)
		}
	})
}

// TestContractNamesEverything: docs/events.md lists all verdicts and results, as data and as a part of the subject, and every
// field of the data.
func TestContractNamesEverything(t *testing.T) {
	document, err := os.ReadFile(contract)
	if err != nil {
		t.Fatal(err)
	}
	words := []string{string(events.JobSucceeded), string(events.JobFailed)}
	for _, v := range []events.Verdict{events.Started, events.Skipped, events.Missed, events.Blocked, events.NotCreated} {
		words = append(words, string(v))
	}
	for _, word := range words {
		row := "| `" + word + "` | `" + strings.ToLower(word) + "` |"
		if !bytes.Contains(document, []byte(row)) {
			t.Errorf("no row that begins with %s", row)
		}
	}
	for title, data := range map[string]reflect.Type{
		"## JobStart":  reflect.TypeFor[events.JobStarted](),
		"## JobFinish": reflect.TypeFor[events.JobFinished](),
		"## Ticks":     reflect.TypeFor[events.TickDecided](),
	} {
		_, chapter, found := bytes.Cut(document, []byte("\n"+title+"\n"))
		chapter, _, _ = bytes.Cut(chapter, []byte("\n## "))
		if !found {
			t.Errorf("there is no chapter %q", title)
		}
		for f := range data.NumField() {
			name, _, _ := strings.Cut(data.Field(f).Tag.Get("json"), ",")
			if !bytes.Contains(chapter, []byte("\n| `"+name+"` |")) {
				t.Errorf("%s has no row about %s", title, name)
			}
		}
	}
}

// TestAnnouncedIsAFact: the confirmation travels and comes back like any other fact.
func TestAnnouncedIsAFact(t *testing.T) {
	want := events.Fact{Cluster: "c", Key: key(), Event: events.Announced{ID: events.PublicID(publicSamples()["TickDecided"])}}
	b, err := events.Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := events.Decode(b); err != nil || back != want {
		t.Errorf("comes back as %+v, %v", back, err)
	}
	other := want
	other.Event = events.Announced{ID: "another"}
	if other.ID() == want.ID() {
		t.Error("two confirmations have one id")
	}
}

// TestPublicEventsAsText: a reason is shown where there is one.
func TestPublicEventsAsText(t *testing.T) {
	for _, test := range []struct {
		event fmt.Stringer
		want  string
	}{
		{events.TickDecided{Verdict: events.Started, Nominal: at(0)}, "Started 2026-"},
		{events.TickDecided{Verdict: events.Missed, Reason: "Superseded", Nominal: at(0)}, "Missed(Superseded) 2026-"},
		{events.JobFinished{Result: events.JobSucceeded, End: at(0)}, "JobFinish " + string(events.JobSucceeded) + " 2026-"},
		{events.JobFinished{Result: events.JobFailed, Reason: "FailedIndexes", End: at(0)}, "JobFinish " + string(events.JobFailed) + "(FailedIndexes) 2026-"},
	} {
		if got := test.event.String(); !strings.Contains(got, test.want) {
			t.Errorf("%q does not say %q", got, test.want)
		}
	}
}
