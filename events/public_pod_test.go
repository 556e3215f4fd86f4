package events_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/events"
)

// TestPodFinishAttributes: each attribute is as in the contract. The event's subject has the Job's name, by which subscribers
// filter.
func TestPodFinishAttributes(t *testing.T) {
	sample := publicSamples()["PodFinished"].(events.PodFinished)
	e := decodePublic(t, "prod.eu", sample)
	for attribute, tt := range map[string]struct{ got, want any }{
		"id":           {e.ID(), "8d0c3a52-77a4-4a38-9c51-3f6b1f0a2c11/pod/0b7e5d0a-5c1c-4d0e-8f6f-2f1f0f5a9a11"},
		"source":       {e.Source(), "/clusters/prod=2Eeu/namespaces/shop/jobs/" + sample.Job.Name},
		"type":         {e.Type(), "dev.jobstream.pod.finish.v1"},
		"subject":      {e.Subject(), sample.Job.Name},
		"time":         {e.Time(), at(9)},
		"partitionkey": {e.Extensions()["partitionkey"], "8d0c3a52-77a4-4a38-9c51-3f6b1f0a2c11"},
		"extensions":   {len(e.Extensions()), 3},
	} {
		if tt.got != tt.want {
			t.Errorf("%s is %v, want %v", attribute, tt.got, tt.want)
		}
	}
	for _, result := range []events.PodResult{events.PodSucceeded, events.PodFailed, events.PodIgnored} {
		sample.Result = result
		want := "jobstream.events.prod=2Eeu.shop.pod.finish." + strings.ToLower(string(result)) + ".nightly=2E" + strings.TrimPrefix(sample.Job.Name, "nightly.")
		if got := events.PublicSubject("prod.eu", sample); got != want {
			t.Errorf("%s goes to %s, want %s", result, got, want)
		}
	}
}

// TestPodFinishHasItsIndex: 0 is an index like any other; a Pod without one has none.
func TestPodFinishHasItsIndex(t *testing.T) {
	for _, index := range []int{events.NoIndex, 0, 7} {
		e := events.PodFinish(events.Job{}, events.Pod{Index: index}, events.PodFailed)
		if has := e.Index != nil; has != (index != events.NoIndex) || has && *e.Index != index {
			t.Errorf("the Pod of index %d has %v", index, e.Index)
		}
	}
}

// TestPodFinishIDs: a Pod has one id, whatever the other fields, and it differs from the ids of a Job's starts and end. As text,
// the sequence puts it after the start in the same second, and before the next start and the end.
func TestPodFinishIDs(t *testing.T) {
	job := events.Job{Namespace: "shop", Name: "pi", UID: uid}
	p := events.Pod{Name: "pi-1", UID: "p", Index: events.NoIndex, Finished: at(5)}
	one, later := events.PodFinish(job, p, events.PodFailed), events.PodFinish(job, events.Pod{Name: "pi-1", UID: "p", Index: 3, Finished: at(8)}, events.PodSucceeded)
	if events.PublicID(one) != events.PublicID(later) {
		t.Errorf("%s, then %s", events.PublicID(one), events.PublicID(later))
	}
	if pod, ok := events.FinishedPod(events.PublicID(one)); !ok || pod != "p" {
		t.Errorf("the id is that of %q, %v", pod, ok)
	}
	start, resumed, end := events.JobStarted{Job: one.Job, Start: at(5)}, events.JobStarted{Job: one.Job, Start: at(6)}, events.JobFinished{Job: one.Job, End: at(1)}
	for _, e := range []events.Public{start, end, publicSamples()["TickDecidedRange"]} {
		if pod, ok := events.FinishedPod(events.PublicID(e)); ok {
			t.Errorf("%s is taken for that of the Pod %q", events.PublicID(e), pod)
		}
	}
	var order []string
	for _, e := range []events.Public{start, one, resumed, end} {
		order = append(order, decodePublic(t, "c", e).Extensions()["sequence"].(string))
	}
	if !slices.IsSorted(order) {
		t.Errorf("the sequence is %q", order)
	}
}

// TestWhichContainerDecides: the first that failed, else the last app container to end; sidecars do not count.
func TestWhichContainerDecides(t *testing.T) {
	ends := func(name string, code int32, second int) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code,
			FinishedAt: metav1.NewTime(at(second)), Reason: "Error", Message: "hunter2"}}}
	}
	runs := corev1.ContainerStatus{Name: "runs", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	for name, tt := range map[string]struct {
		apps, inits []corev1.ContainerStatus
		want        *events.ContainerEnd
	}{
		"none":                       {},
		"one that runs":              {apps: []corev1.ContainerStatus{runs}},
		"the last of those that end": {apps: []corev1.ContainerStatus{ends("a", 0, 5), ends("b", 0, 7), ends("c", 0, 6)}, want: &events.ContainerEnd{Name: "b", Reason: "Error"}},
		"the first that fails": {apps: []corev1.ContainerStatus{ends("a", 137, 7), ends("b", 3, 5), ends("c", 0, 9)},
			want: &events.ContainerEnd{Name: "b", ExitCode: 3, Reason: "Error"}},
		"an init container": {inits: []corev1.ContainerStatus{ends("ready", 0, 1), ends("i", 4, 2)}, want: &events.ContainerEnd{Name: "i", ExitCode: 4, Reason: "Error"}},
		"init containers that end well decide nothing": {inits: []corev1.ContainerStatus{ends("i", 0, 9)}, apps: []corev1.ContainerStatus{ends("a", 0, 5)},
			want: &events.ContainerEnd{Name: "a", Reason: "Error"}},
		"a sidecar": {inits: []corev1.ContainerStatus{ends("sidecar", 143, 1)}, apps: []corev1.ContainerStatus{ends("a", 0, 5)},
			want: &events.ContainerEnd{Name: "a", Reason: "Error"}},
		"a failure while another runs": {apps: []corev1.ContainerStatus{runs, ends("a", 1, 5)}, want: &events.ContainerEnd{Name: "a", ExitCode: 1, Reason: "Error"}},
	} {
		p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n", InitContainers: []corev1.Container{{Name: "sidecar", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}},
			Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", StartTime: new(metav1.NewTime(at(1))), ContainerStatuses: tt.apps, InitContainerStatuses: tt.inits}}
		want := &events.PodEnd{Node: "n", Start: at(1), Reason: "Evicted", Container: tt.want}
		if got := events.ProjectPod(p).End; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %+v", name, got, got.Container)
		}
	}
}

// TestWhatAnEndedPodTells: the fact has no text that a user has written, not even in place of a reason, and no end before the
// end.
func TestWhatAnEndedPodTells(t *testing.T) {
	const secret = "the password is hunter2"
	meta := metav1.ObjectMeta{Name: "pi-1", Namespace: "shop", UID: "p", Labels: map[string]string{batchv1.ControllerUidLabel: uid, "l": secret}, Annotations: map[string]string{"a": secret}}
	p := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "main", Image: secret, Command: []string{secret},
		Env: []corev1.EnvVar{{Name: "PASSWORD", Value: secret}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodFailed, Message: secret, Reason: secret, ContainerStatuses: []corev1.ContainerStatus{{Name: "main",
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: secret, Message: secret, FinishedAt: metav1.NewTime(at(9))}}}}}}
	seen := events.ProjectPod(p)
	seen.Labels = nil // labels decide which Job may adopt an orphan
	fact, err := events.Encode(events.Fact{Cluster: "c", Key: key(), Event: events.PodObserved{Pod: seen}})
	if err != nil {
		t.Fatal(err)
	}
	public, err := events.EncodePublic("c", events.PodFinish(events.Job{Namespace: "shop", Name: "pi", UID: uid}, seen, events.PodFailed))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(fact)+string(public), "hunter2") {
		t.Errorf("%s\n%s", fact, public)
	}
	p.Status.Phase = corev1.PodRunning
	if got := events.ProjectPod(p).End; got != nil {
		t.Errorf("it runs, and has ended as %+v", got)
	}
}

// TestPodFinishTimes: the duration from the start to the end, never negative; 0 without a start.
func TestPodFinishTimes(t *testing.T) {
	for name, tt := range map[string]struct {
		end  *events.PodEnd
		want int64
	}{
		"unknown":                {nil, 0},
		"never taken by a node":  {&events.PodEnd{}, 0},
		"seven seconds":          {&events.PodEnd{Start: at(2)}, 7},
		"a clock that is behind": {&events.PodEnd{Start: at(30)}, 0},
	} {
		e := events.PodFinish(events.Job{}, events.Pod{Index: events.NoIndex, Finished: at(9).In(time.FixedZone("east", 3600)), End: tt.end}, events.PodSucceeded)
		if e.DurationSeconds != tt.want || e.End != at(9) || e.Index != nil {
			t.Errorf("%s: %+v", name, e)
		}
	}
}
