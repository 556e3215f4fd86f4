package kubectl

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// scheme has all kinds that the plugin creates and prints.
var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientscheme.AddToScheme(s))
	utilruntime.Must(v1alpha1.AddToScheme(s))
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	return s
}()

// scheduledJobs is a client for ScheduledJobs, like client-go's for the built-in kinds.
type scheduledJobs struct{ rest rest.Interface }

func newScheduledJobs(config *rest.Config) (scheduledJobs, error) {
	c := rest.CopyConfig(config)
	c.GroupVersion, c.APIPath = &v1alpha1.GroupVersion, "/apis"
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON // custom resources have no protobuf
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return scheduledJobs{}, fmt.Errorf("make a client of ScheduledJobs for %s: %w", c.Host, err)
	}
	return scheduledJobs{client}, nil
}

func (s scheduledJobs) create(ctx context.Context, namespace string, o *v1alpha1.ScheduledJob, options metav1.CreateOptions) (*v1alpha1.ScheduledJob, error) {
	out := &v1alpha1.ScheduledJob{}
	return out, s.rest.Post().Namespace(namespace).Resource(v1alpha1.ScheduledJobResource).VersionedParams(&options, metav1.ParameterCodec).Body(o).Do(ctx).Into(out)
}

func (s scheduledJobs) get(ctx context.Context, namespace, name string) (*v1alpha1.ScheduledJob, error) {
	out := &v1alpha1.ScheduledJob{}
	return out, s.rest.Get().Namespace(namespace).Resource(v1alpha1.ScheduledJobResource).Name(name).Do(ctx).Into(out)
}

// patch applies the merge patch to the ScheduledJob with that name.
func (s scheduledJobs) patch(ctx context.Context, namespace, name string, merge []byte, options metav1.PatchOptions) (*v1alpha1.ScheduledJob, error) {
	out := &v1alpha1.ScheduledJob{}
	return out, s.rest.Patch(types.MergePatchType).Namespace(namespace).Resource(v1alpha1.ScheduledJobResource).Name(name).
		VersionedParams(&options, metav1.ParameterCodec).Body(merge).Do(ctx).Into(out)
}

func (s scheduledJobs) list(ctx context.Context, namespace string, o metav1.ListOptions) (*v1alpha1.ScheduledJobList, error) {
	out := &v1alpha1.ScheduledJobList{}
	return out, s.rest.Get().Namespace(namespace).Resource(v1alpha1.ScheduledJobResource).VersionedParams(&o, metav1.ParameterCodec).Do(ctx).Into(out)
}

func (s scheduledJobs) watch(ctx context.Context, namespace string, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	return s.rest.Get().Namespace(namespace).Resource(v1alpha1.ScheduledJobResource).VersionedParams(&o, metav1.ParameterCodec).Watch(ctx)
}

// delete deletes the ScheduledJob with that UID; the garbage collector then deletes its Jobs.
func (s scheduledJobs) delete(ctx context.Context, namespace, name string, uid types.UID) error {
	return s.rest.Delete().Namespace(namespace).Resource(v1alpha1.ScheduledJobResource).Name(name).Body(deleteOnly(uid)).Do(ctx).Error()
}

// deleteOnly returns options that delete only the object with that UID, not another with its name.
func deleteOnly(uid types.UID) *metav1.DeleteOptions {
	return &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(uid)), PropagationPolicy: new(metav1.DeletePropagationBackground)}
}
