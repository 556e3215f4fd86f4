package effect

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

var noon = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

// What a log and a transcript show of an effect: what it is about, and only those of its parts that are not as usual.
func TestDescriptions(t *testing.T) {
	elsewhere := metav1.NewTime(noon.In(time.FixedZone("", 3600)))
	for want, e := range map[string]Effect{
		"CreatePod pi-a (serial 3)":          CreatePod{Job: "pi", Name: "pi-a", Serial: 3, Index: events.NoIndex, Parameters: "secret"},
		"CreatePod pi-a (serial 3, index 0)": CreatePod{Name: "pi-a", Serial: 3},
		"CreatePod pi-a (serial 3, index 1, failed 1 times, failed 2 times and was ignored)": CreatePod{Name: "pi-a", Serial: 3, Index: 1, IndexFailures: 1, IndexIgnoredFailures: 2},
		"FindPod pi-a":                                FindPod{Name: "pi-a", Serial: 3},
		"RemoveFinalizer pi-a":                        RemoveFinalizer{Name: "pi-a", UID: "u"},
		"AddFinalizer pi-a@7":                         AddFinalizer{Name: "pi-a", Version: 7},
		"AdoptPod pi-a@7 (serial 3)":                  AdoptPod{Name: "pi-a", Version: 7, Serial: 3},
		"AdoptPod pi-a@7 (serial 3) and hold it":      AdoptPod{Name: "pi-a", Version: 7, Serial: 3, Hold: true},
		"ReleasePod pi-a":                             ReleasePod{Name: "pi-a"},
		"DeletePod pi-a":                              DeletePod{Name: "pi-a"},
		"DeletePod pi-a@7, finalizer removed first":   DeletePod{Name: "pi-a", Version: 7, RemoveFinalizer: true},
		"DeletePod pi-a: it was too slow":             DeletePod{Name: "pi-a", Report: Report{Reason: "Slow", Message: "it was too slow"}},
		"DeleteJob pi@7":                              DeleteJob{Job: "pi", Version: 7},
		"ReadParameters shops":                        ReadParameters{ConfigMap: "shops"},
		"SetTimer wake 12:00:00":                      SetTimer{Name: "wake", At: elsewhere.Time},
		"TakeInventory":                               TakeInventory{ID: "x", Job: "pi"},
		"WriteJobStatus @7 active=0 startTime=nil":    WriteJobStatus{Version: 7},
		"WriteJobStatus @7 active=1":                  WriteJobStatus{Version: 7, Status: batchv1.JobStatus{Active: 1, StartTime: &elsewhere, Terminating: new(int32(0)), FailedIndexes: new(""), UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{}}},
		"WriteJobStatus @7 active=0 uncounted=[a]/[]": WriteJobStatus{Version: 7, Status: batchv1.JobStatus{StartTime: &elsewhere, UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{Succeeded: []types.UID{"a"}}}},
		"WriteJobStatus @7 active=0 succeeded=1 failed=2 completed=0 failedIndexes=1,2 exits=1:3(Error),2:? uncounted=[a]/[b] terminating=4 Suspended Failed(BackoffLimitExceeded)": WriteJobStatus{Version: 7,
			FailedIndexExits: []events.IndexExit{{Index: 1, ExitCode: 3, Reason: "Error"}, {Index: 2}},
			Status: batchv1.JobStatus{StartTime: &elsewhere, Succeeded: 1, Failed: 2, CompletedIndexes: "0", FailedIndexes: new("1,2"), Terminating: new(int32(4)),
				UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{Succeeded: []types.UID{"a"}, Failed: []types.UID{"b"}},
				Conditions:              []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: "True"}, {Type: batchv1.JobComplete, Status: "False"}, {Type: batchv1.JobFailed, Status: "True", Reason: "BackoffLimitExceeded"}}}},
		"CreateJob nightly-a (2026-01-05T12:00:00Z)": CreateJob{Name: "nightly-a", Nominal: elsewhere.Time},
		"FindRun nightly-a":                          FindRun{Name: "nightly-a", ID: "x"},
		"WriteScheduleStatus @7":                     WriteScheduleStatus{Version: 7},
		"WriteScheduleStatus @7 decidedUntil=2026-01-05T12:00:00Z next=2026-01-05T12:00:00Z active=nightly-a queued=1 successful=2 failed=3 missed=4 Ready(Scheduled) unannounced=1": WriteScheduleStatus{Version: 7,
			Unannounced: make([]events.TickDecided, 1), Status: v1alpha1.ScheduledJobStatus{DecidedUntil: &elsewhere, NextScheduleTime: &elsewhere,
				Active: []corev1.ObjectReference{{Name: "nightly-a"}}, Queued: 1, Successful: 2, Failed: 3, Missed: 4,
				Conditions: []metav1.Condition{{Type: "Stalled", Status: "False", Reason: "x"}, {Type: "Ready", Status: "True", Reason: "Scheduled"}}}},
		"DeleteScheduledJob nightly@7":                DeleteScheduledJob{ScheduledJob: "nightly", Version: 7},
		"DeleteRun nightly-a":                         DeleteRun{Name: "nightly-a", UID: "u"},
		"DeleteRun nightly-a@7 and wait for its Pods": DeleteRun{Name: "nightly-a", Version: 7, Foreground: true},
		"Announce JobStart 2026-01-05T12:00:00Z":      Announce{Event: events.JobStarted{Start: noon}},
		"ReportDropped 5":                             ReportDropped{ID: "x", Count: 5},
	} {
		if got := e.String(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// A refusal belongs to the one object that it is about; only an inventory is shared.
func TestWhatAnEffectIsAbout(t *testing.T) {
	for _, c := range []struct {
		of   Effect
		want string
	}{
		{RemoveFinalizer{Name: "a"}, "a"}, {AddFinalizer{Name: "a"}, "a"}, {AdoptPod{Job: "pi", Name: "a"}, "a"}, {ReleasePod{Name: "a"}, "a"}, {DeletePod{Name: "a"}, "a"},
		{DeleteRun{Name: "a"}, "a"}, {CreateJob{ScheduledJob: "nightly", Name: "a"}, "a"}, {CreatePod{Name: "a"}, ""}, {FindPod{Name: "a"}, ""}, {DeleteJob{Job: "pi"}, ""}, {TakeInventory{Job: "pi"}, ""},
	} {
		_, shared := c.of.(TakeInventory)
		if got := Subject(c.of); got != c.want || Shared(c.of) != shared {
			t.Errorf("%s: %q, shared %v", c.of, got, Shared(c.of))
		}
	}
}

// A function has one timer, for the earliest of the times that it waits for.
func TestWakeIsTheEarliest(t *testing.T) {
	later := noon.Add(time.Minute)
	for _, c := range []struct {
		name string
		by   []time.Time
		want time.Time
	}{
		{"no time", nil, time.Time{}},
		{"the zero time", []time.Time{{}}, time.Time{}},
		{"one", []time.Time{later}, later},
		{"an earlier one after it", []time.Time{later, noon}, noon},
		{"a later one after it", []time.Time{noon, later}, noon},
		{"the zero time after it", []time.Time{noon, {}}, noon},
	} {
		var w Wake
		for _, at := range c.by {
			w.By(at)
		}
		got := w.Timer()
		if len(got) != 1 && !c.want.IsZero() || len(got) > 0 && got[0] != (SetTimer{Name: "wake", At: c.want}) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
