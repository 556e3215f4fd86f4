package cluster

import (
	"context"
	stdjson "encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// ScheduledJobs is a client of ScheduledJobs, like client-go's for the kinds of Kubernetes itself.
type ScheduledJobs struct {
	rest       rest.Interface
	parameters runtime.ParameterCodec
}

// NewScheduledJobs makes a client of the same API server as the configuration's other clients. It sends no request: callers learn
// from their first request whether the server serves the kind.
func NewScheduledJobs(config *rest.Config) (*ScheduledJobs, error) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(v1alpha1.GroupVersion.WithKind(v1alpha1.ScheduledJobKind), &ScheduledJob{})
	scheme.AddKnownTypeWithName(v1alpha1.GroupVersion.WithKind(v1alpha1.ScheduledJobKind+"List"), &ScheduledJobList{})
	metav1.AddToGroupVersion(scheme, v1alpha1.GroupVersion)
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // the server's errors
	c := rest.CopyConfig(config)
	c.GroupVersion, c.APIPath = &v1alpha1.GroupVersion, "/apis"
	// Custom resources have no protobuf.
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("make a client of ScheduledJobs for %s: %w", c.Host, err)
	}
	return &ScheduledJobs{rest: client, parameters: runtime.NewParameterCodec(scheme)}, nil
}

// RESTClient sends requests about ScheduledJobs, like the REST client of a client-go group.
func (s *ScheduledJobs) RESTClient() rest.Interface { return s.rest }

// In returns lists and watches of the ScheduledJobs of one namespace, or with "" of all.
func (s *ScheduledJobs) In(namespace string) namespacedScheduledJobs {
	return namespacedScheduledJobs{s, namespace}
}

type namespacedScheduledJobs struct {
	*ScheduledJobs
	namespace string
}

func (s namespacedScheduledJobs) get(o metav1.ListOptions) *rest.Request {
	return s.rest.Get().Namespace(s.namespace).Resource(v1alpha1.ScheduledJobResource).VersionedParams(&o, s.parameters)
}

// List reads one page.
func (s namespacedScheduledJobs) List(ctx context.Context, o metav1.ListOptions) (*ScheduledJobList, error) {
	list := &ScheduledJobList{}
	return list, s.get(o).Do(ctx).Into(list)
}

// Watch opens a watch, as those of client-go do.
func (s namespacedScheduledJobs) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	return s.get(o).Watch(ctx)
}

// ScheduledJob is a ScheduledJob as the API server has it, which may not fit the Go types: the schema accepts a runAt of 30
// February, and an older schema may have accepted anything. A strict decoder fails on the whole list, so one such object would
// stop the work for all. Here only the spec of that object is missing.
type ScheduledJob struct {
	v1alpha1.ScheduledJob `json:",inline"`
	unreadable            string // why
}

// ScheduledJobList is a list of them.
type ScheduledJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ScheduledJob `json:"items"`
}

// UnmarshalJSON decodes as much as possible.
func (j *ScheduledJob) UnmarshalJSON(data []byte) error {
	err := json.Unmarshal(data, &j.ScheduledJob)
	if err == nil {
		return nil
	}
	*j = ScheduledJob{unreadable: "the spec cannot be read: " + err.Error()}
	var parts struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Status            stdjson.RawMessage `json:"status"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	j.TypeMeta, j.ObjectMeta = parts.TypeMeta, parts.ObjectMeta
	if len(parts.Status) > 0 && json.Unmarshal(parts.Status, &j.Status) != nil {
		j.Status = v1alpha1.ScheduledJobStatus{}
	}
	return nil
}

// Project returns what functions need: for an object that cannot be decoded, the reason.
func (j *ScheduledJob) Project() events.ScheduledJob {
	p := events.ProjectScheduledJob(&j.ScheduledJob)
	if j.unreadable != "" {
		p.Invalid = Cut(j.unreadable)
	}
	return p
}

// DeepCopyObject implements runtime.Object.
func (j *ScheduledJob) DeepCopyObject() runtime.Object {
	return &ScheduledJob{ScheduledJob: *j.DeepCopy(), unreadable: j.unreadable}
}

// DeepCopyObject implements runtime.Object.
func (l *ScheduledJobList) DeepCopyObject() runtime.Object {
	out := &ScheduledJobList{TypeMeta: l.TypeMeta, ListMeta: *l.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*ScheduledJob))
	}
	return out
}
