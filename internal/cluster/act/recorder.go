package act

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster"
)

// Recorder writes Kubernetes Events, for users. They are sent in the background and by best effort: an Event that cannot be
// written delays nothing.
type Recorder struct {
	broadcaster record.EventBroadcaster
	recorder    record.EventRecorder
}

// NewRecorder makes a Recorder whose Events name the component, such as "jobstream".
func NewRecorder(client kubernetes.Interface, component string) *Recorder {
	b := record.NewBroadcaster(record.WithCorrelatorOptions(record.CorrelatorOptions{SpamKeyFunc: spamKey}))
	b.StartRecordingToSink(once{&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")}})
	return &Recorder{broadcaster: b, recorder: b.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component})}
}

// spamKey is the key by which client-go's spam filter counts: 25 Events at once, then one in five minutes. By default that is the
// object. This key adds the reason, so that a thousand created Pods do not suppress the Event that the Job has failed.
func spamKey(e *corev1.Event) string {
	return strings.Join([]string{e.Source.Component, string(e.InvolvedObject.UID), e.Type, e.Reason}, "/")
}

// Report writes an Event about the object.
func (r *Recorder) Report(about *corev1.ObjectReference, what effect.Report) {
	severity := corev1.EventTypeNormal
	if what.Warning {
		severity = corev1.EventTypeWarning
	}
	r.recorder.Event(about, severity, what.Reason, cluster.Cut(what.Message))
}

// Close stops sending. Unsent Events may be lost.
func (r *Recorder) Close() { r.broadcaster.Shutdown() }
