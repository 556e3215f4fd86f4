package events_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// exitsOf returns what is read of a finished Job with that annotation and these failed indexes.
func exitsOf(annotation, failed string) []events.IndexExit {
	j := &batchv1.Job{}
	j.Annotations = map[string]string{v1alpha1.FailedIndexExitsAnnotation: annotation}
	j.Status.FailedIndexes = &failed
	j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
	e, _ := events.ProjectJob(j, events.Claim{}).Ended()
	return e.FailedIndexExits
}

// What a subscriber reads of a failed index, by the evidence that its last Pod carries.
func TestExitOfAnIndex(t *testing.T) {
	for _, c := range []struct {
		pod  events.Pod
		want string
	}{
		{events.Pod{Index: 3, Exits: []events.Exit{{Container: "main", Code: 1}}}, "3:1"},
		{events.Pod{Index: 7, Exits: []events.Exit{{Container: "main", Code: 137}},
			End: &events.PodEnd{Container: &events.ContainerEnd{Name: "main", ExitCode: 137, Reason: "OOMKilled"}}}, "7:137(OOMKilled)"},
		{events.Pod{Index: 0, End: &events.PodEnd{Reason: "Evicted"}}, "0:?(Evicted)"},
		{events.Pod{Index: 2, Deleting: true}, "2:?"},
	} {
		if got := events.ExitOf(c.pod).String(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.pod, got, c.want)
		}
	}
}

// Users may write the annotation: what no reconciler has written is ignored, and an index that has not failed has no exit.
func TestExitsOfAJob(t *testing.T) {
	both := []events.IndexExit{{Index: 3, ExitCode: 1, Reason: "Error"}, {Index: 7, ExitCode: 137, Reason: "OOMKilled"}}
	written, err := json.Marshal(both)
	if err != nil {
		t.Fatal(err)
	}
	many := func(n int, each string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(each, i))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	for _, c := range []struct {
		name, annotation, failed string
		want                     []events.IndexExit
	}{
		{"as a reconciler writes it", string(written), "1-4,7", both},
		{"in another order", `[{"index":7,"exitCode":137,"reason":"OOMKilled"},{"index":3,"exitCode":1,"reason":"Error"}]`, "3,7", both},
		{"an index has not failed", string(written), "0-2,4-9", both[1:]},
		{"the index of the first Pod", `[{"index":0}]`, "0", []events.IndexExit{{}}},
		{"an interval that ends with an index, one that begins with one", string(written), "2-3,7-8", both},
		{"intervals beside the indexes", string(written), "0-2,4-6,8", nil},
		{"as many as a reconciler writes", many(20, `{"index":%d}`), "3", []events.IndexExit{{Index: 3}}},
		{"as long as a reconciler may write", `[{"index":3}]` + strings.Repeat(" ", 4096-len(`[{"index":3}]`)), "3", []events.IndexExit{{Index: 3}}},
		{"one byte longer", `[{"index":3}]` + strings.Repeat(" ", 4097-len(`[{"index":3}]`)), "3", nil},
		{"an end of an interval that cannot be read", string(written), "3,5-x,7", both[:1]},
		{"no index has failed", string(written), "", nil},
		{"failed indexes that nobody can read", string(written), "x", nil},
		{"missing", "", "3,7", nil},
		{"no JSON", "[", "3,7", nil},
		{"another type", `{"index":3}`, "3,7", nil},
		{"a negative index", `[{"index":-1}]`, "3,7", nil},
		{"an index twice", `[{"index":3,"exitCode":1},{"index":3,"exitCode":2}]`, "3,7", nil},
		{"a reason of many words", `[{"index":3,"reason":"my password is"}]`, "3,7", nil},
		{"an exit code that is none", `[{"index":3,"exitCode":4294967296}]`, "3,7", nil},
		{"more than a reconciler writes", many(21, `{"index":%d}`), "0-99", nil},
		{"longer than a reconciler writes", many(20, `{"index":%d,"x":"`+strings.Repeat("a", 200)+`"}`), "0-99", nil},
	} {
		if got := exitsOf(c.annotation, c.failed); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// The longest annotation that a reconciler writes is read again.
func TestTheLongestExits(t *testing.T) {
	const first = 1<<31 - 1 - events.MaxIndexExits
	var all []events.IndexExit
	for i := range events.MaxIndexExits {
		all = append(all, events.IndexExit{Index: first + i, ExitCode: -1 << 31, Reason: strings.Repeat("a", 64)})
	}
	b, err := json.Marshal(all)
	if err != nil || len(b) > 2500 {
		t.Errorf("%d bytes, %v: the comment on MaxIndexExits names fewer", len(b), err)
	}
	if got := exitsOf(string(b), fmt.Sprintf("%d-%d", first, 1<<31-1)); !reflect.DeepEqual(got, all) {
		t.Errorf("read as %v", got)
	}
}

// A Job names the indexes whose values are published; the values are added by the reconciler as it announces the end.
func TestIndexesWhoseValuesArePublished(t *testing.T) {
	asks := func(j *events.Job) { j.Options = events.Options{Parameters: "shops", PublishFailedValues: true} }
	perIndex := func(failed string) func(*events.Job) {
		return func(j *events.Job) { j.BackoffLimitPerIndex, j.Status.FailedIndexes = new(int32(0)), &failed }
	}
	last := func(index int) func(*events.Job) {
		return func(j *events.Job) { j.LastFailure = &events.PodFailure{Pod: "a", Index: &index} }
	}
	for _, c := range []struct {
		name   string
		change []func(*events.Job)
		want   string // the indexes
	}{
		{"failed indexes", []func(*events.Job){asks, perIndex("1,3-5")}, "1 3 4 5"},
		{"more than twenty", []func(*events.Job){asks, perIndex("0-4,10-99999,100002")}, "0 1 2 3 4 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24"},
		{"exactly twenty", []func(*events.Job){asks, perIndex("0-19")}, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19"},
		{"a limit for the Job as a whole, and no index is known", []func(*events.Job){asks, func(j *events.Job) { j.LastFailure = &events.PodFailure{Pod: "a"} }}, ""},
		{"of the first index that has succeeded since", []func(*events.Job){asks, last(5), func(j *events.Job) { j.Status.CompletedIndexes = "0,5-7" }}, ""},
		{"of the last index that has succeeded since", []func(*events.Job){asks, last(7), func(j *events.Job) { j.Status.CompletedIndexes = "0,5-7" }}, ""},
		{"of an index after those that have", []func(*events.Job){asks, last(8), func(j *events.Job) { j.Status.CompletedIndexes = "0,5-7" }}, "8"},
		{"the Job does not ask for it", []func(*events.Job){perIndex("1,3-5")}, ""},
		{"a limit for the Job as a whole", []func(*events.Job){asks, last(6)}, "6"},
		{"of an index that has succeeded since", []func(*events.Job){asks, last(6), func(j *events.Job) { j.Status.CompletedIndexes = "0,5-7" }}, ""},
		{"of an index between those that have", []func(*events.Job){asks, last(6), func(j *events.Job) { j.Status.CompletedIndexes = "0,5,7" }}, "6"},
		{"a limit per index, and none has failed for good", []func(*events.Job){asks, perIndex(""), last(6)}, ""},
		{"the Job has no values", []func(*events.Job){asks, perIndex("1"), func(j *events.Job) { j.Options.Parameters = "" }}, ""},
		{"no Pod has failed", []func(*events.Job){asks}, ""},
		{"the Job is Complete, by its successPolicy", []func(*events.Job){asks, perIndex("1"), func(j *events.Job) { j.Status.Conditions[0].Type = batchv1.JobComplete }}, ""},
	} {
		j := events.Job{Indexed: true}
		j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
		for _, f := range c.change {
			f(&j)
		}
		e, ended := j.Ended()
		var got []string
		if v := e.FailedValues; v != nil {
			for _, x := range v.Indexes {
				if got = append(got, fmt.Sprint(x.Index)); x.Values != nil || v.ConfigMap != "shops" {
					t.Errorf("%s: %+v", c.name, v)
				}
			}
		}
		if strings.Join(got, " ") != c.want || !ended {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
