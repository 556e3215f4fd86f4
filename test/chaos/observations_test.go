package chaos

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/jobstream/jobstream/internal/dev/controlplane"
	"github.com/jobstream/jobstream/internal/dev/controlplane/controlplanetest"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// observed starts a control plane, and observes it.
func observed(t *testing.T) (*controlplane.ControlPlane, *observations) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: takes a control plane")
	}
	cp := controlplanetest.Start(t, controlplane.Config{})
	s, err := observe(t.Context(), cp.EtcdURL(), controlplane.Below("pods", namespace))
	if err != nil {
		t.Fatal(err)
	}
	return cp, s
}

// A Pod may be created, end and go before any watch of an API server that was killed is back. The checker must know of it nevertheless,
// since it has written its line.
func TestObservationsMissNothingWhileTheAPIServerIsAway(t *testing.T) {
	cp, s := observed(t)
	ctx, end := context.WithCancel(t.Context())
	var watcher sync.WaitGroup
	watcher.Go(func() { s.watch(ctx) })
	defer watcher.Wait()
	defer end()
	if err := cp.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "brief", Namespace: namespace, UID: "brief", Finalizers: []string{batchv1.JobTrackingFinalizer}}}
	for _, p.Status.Phase = range []corev1.PodPhase{corev1.PodPending, corev1.PodFailed} {
		if err := cp.Store(t.Context(), "pods", []controlplane.Object{p}); err != nil {
			t.Fatal(err)
		}
	}
	if err := cp.Forget(t.Context(), "pods", namespace); err != nil {
		t.Fatal(err)
	}
	want := life{name: "brief", phase: corev1.PodFailed, counts: corev1.PodFailed, gone: true}
	within, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := harness.Poll(within, func(context.Context) error {
		lives, wrong := s.all()
		if lives["brief"] != want || len(wrong) > 0 {
			return fmt.Errorf("%+v, %q", lives, wrong)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// A watch that was too far behind has missed states: what the checker then knows proves nothing, and it says so.
func TestObservationsSayThatTheyAreIncomplete(t *testing.T) {
	cp, s := observed(t)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "missed", Namespace: namespace, UID: "missed"}}
	for range 2 { // the second state is what a compaction keeps
		if err := cp.Store(t.Context(), "pods", []controlplane.Object{p}); err != nil {
			t.Fatal(err)
		}
	}
	now, err := s.etcd.Get(t.Context(), s.keys, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.etcd.Compact(t.Context(), now.Header.Revision); err != nil {
		t.Fatal(err)
	}
	s.watch(t.Context()) // ends by itself
	_, wrong := s.all()
	if len(wrong) != 2 || !strings.Contains(wrong[0], "compacted") || !strings.Contains(wrong[1], "has ended") {
		t.Errorf("findings %q", wrong)
	}
}

// A Pod counts by its phase while it was held, and its deletion is no change of phase.
func TestObservationsOfAPod(t *testing.T) {
	at := func(phase corev1.PodPhase, held, terminating bool) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "p"}, Status: corev1.PodStatus{Phase: phase}}
		if held {
			p.Finalizers = []string{batchv1.JobTrackingFinalizer}
		}
		if terminating {
			p.DeletionTimestamp = &metav1.Time{Time: epoch}
		}
		return p
	}
	running := at(corev1.PodRunning, true, false)
	for what, c := range map[string]struct {
		stored []*corev1.Pod
		want   life
	}{
		"ended, then no longer held":      {[]*corev1.Pod{running, at(corev1.PodSucceeded, true, false), at(corev1.PodSucceeded, false, false)}, life{phase: corev1.PodSucceeded, counts: corev1.PodSucceeded}},
		"no longer held, then ended":      {[]*corev1.Pod{running, at(corev1.PodRunning, false, false), at(corev1.PodSucceeded, false, false)}, life{phase: corev1.PodSucceeded}},
		"terminated, then ended":          {[]*corev1.Pod{running, at(corev1.PodRunning, true, true), at(corev1.PodFailed, true, true)}, life{phase: corev1.PodFailed, counts: corev1.PodFailed, withdrawn: true}},
		"no longer held, then terminated": {[]*corev1.Pod{running, at(corev1.PodRunning, false, true)}, life{phase: corev1.PodRunning}},
	} {
		s := newObservations()
		for _, p := range c.stored {
			s.take(put(t, p))
		}
		lives, wrong := s.all()
		if l := lives["p"]; l != c.want || len(wrong) > 0 {
			t.Errorf("%s: %+v, %q", what, l, wrong)
		}
	}
}

// Two Pods may have one key, one after the other: the end of the first is not that of the second.
func TestObservationsOfANameUsedTwice(t *testing.T) {
	s := newObservations()
	first, second := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "first"}}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "second"}}
	s.take(put(t, first))
	s.take(&clientv3.Event{Type: clientv3.EventTypeDelete, Kv: &mvccpb.KeyValue{Key: []byte("pod")}})
	s.take(put(t, second))
	if lives, _ := s.all(); !lives["first"].gone || lives["second"].gone || len(lives) != 2 {
		t.Errorf("%+v", lives)
	}
	s.take(&clientv3.Event{Kv: &mvccpb.KeyValue{Key: []byte("pod"), Value: []byte("no Pod")}})
	if _, wrong := s.all(); len(wrong) != 1 {
		t.Errorf("what cannot be decoded is no finding: %q", wrong)
	}
}

// put is the event of a write, encoded as the API server stores it.
func put(t *testing.T, p *corev1.Pod) *clientv3.Event {
	t.Helper()
	encoder := scheme.Codecs.EncoderForVersion(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), corev1.SchemeGroupVersion)
	value, err := runtime.Encode(encoder, p)
	if err != nil {
		t.Fatal(err)
	}
	return &clientv3.Event{Kv: &mvccpb.KeyValue{Key: []byte("pod"), Value: value}}
}
