package main

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

var noon = time.Date(2026, time.June, 1, 12, 0, 0, 0, time.UTC)

// jobOf is a Job as the watch shows it.
func jobOf(uid, schedule types.UID, nominal string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		UID: uid, Annotations: map[string]string{v1alpha1.NominalTimeAnnotation: nominal},
		OwnerReferences: []metav1.OwnerReference{{UID: schedule, Controller: ptr.To(true)}},
	}}
}

func TestRunsAreJudged(t *testing.T) {
	r := newRuns()
	r.note(jobOf("a1", "a", "2026-06-01T12:00:00Z"), noon.Add(100*time.Millisecond))
	r.note(jobOf("a1", "a", "2026-06-01T12:00:00Z"), noon.Add(time.Hour)) // it has changed
	r.note(jobOf("b1", "b", "2026-06-01T12:00:00Z"), noon.Add(time.Second))
	r.note(jobOf("c1", "c", "2026-06-01T12:00:00Z"), noon.Add(3*time.Second))
	r.note(jobOf("c2", "c", "2026-06-01T12:00:00Z"), noon.Add(4*time.Second)) // the same run again
	r.note(jobOf("d1", "d", "2026-06-01T11:00:00Z"), noon)                    // of an earlier time
	r.note(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "long"}}, noon)
	p := r.judge([]run{{"a", noon.Unix()}, {"b", noon.Unix()}, {"c", noon.Unix()}, {"d", noon.Unix()}})
	if p.due != 4 || p.late != 1 || p.twice != 1 {
		t.Errorf("%d due, %d late, %d twice, want 4, 1, 1", p.due, p.late, p.twice)
	}
	if want := []time.Duration{100 * time.Millisecond, time.Second, 3 * time.Second}; !slices.Equal(p.lateness, want) {
		t.Errorf("lateness is %v, want %v", p.lateness, want)
	}
	if p.wrong() == nil {
		t.Error("a run with two Jobs is right")
	}
	if err := r.judge([]run{{"a", noon.Unix()}, {"d", noon.Unix()}}).wrong(); err != nil {
		t.Errorf("without them: %v", err)
	}
}

// In any hour, each hourly ScheduledJob is due once, and what is due at the end of an interval is not due in the next.
func TestDueRuns(t *testing.T) {
	uids := []types.UID{"a", "b", "c", "d", "e"}
	from := noon.Add(17 * time.Minute)
	whole, err := dueRuns("H * * * *", slices.Values(uids), from, from.Add(time.Hour))
	if err != nil || len(whole) != len(uids) {
		t.Fatalf("%d runs in an hour, %v, want %d", len(whole), err, len(uids))
	}
	seen := map[run]bool{}
	for minute := range 60 {
		at := from.Add(time.Duration(minute) * time.Minute)
		due, err := dueRuns("H * * * *", slices.Values(uids), at, at.Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range due {
			if seen[d] {
				t.Errorf("%v is due twice", d)
			}
			seen[d] = true
		}
	}
	if len(seen) != len(uids) {
		t.Errorf("%d runs minute by minute, want %d", len(seen), len(uids))
	}
}
