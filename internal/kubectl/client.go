package kubectl

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// tool is what all commands share.
type tool struct {
	genericiooptions.IOStreams
	config *genericclioptions.ConfigFlags
	// suffix ends names that must be another one each time.
	suffix func() string
	// patience is how long jobstream may take to do something about a new object before we say that it does not. It usually
	// takes a tenth of a second.
	patience time.Duration
	// now is the clock by which what was listed is judged.
	now func() time.Time
}

func newTool(streams genericiooptions.IOStreams) *tool {
	return &tool{IOStreams: streams, config: genericclioptions.NewConfigFlags(true),
		suffix: func() string { return rand.String(5) }, patience: 5 * time.Second, now: time.Now}
}

// client is the API server, as the kubeconfig and the flags have it.
type client struct {
	kubernetes.Interface
	scheduled scheduledJobs
	dynamic   dynamic.Interface
	// namespace is where the user is.
	namespace string
	host      string
	config    *rest.Config // what the others were made of
}

// namespace is where the user is, and whether a flag says so.
func (t *tool) namespace() (name string, explicit bool, err error) {
	return t.config.ToRawKubeConfigLoader().Namespace()
}

// connect makes the clients. No request is sent.
func (t *tool) connect() (*client, error) {
	config, err := t.config.ToRESTConfig()
	if err != nil {
		return nil, unusable(err)
	}
	config.QPS = -1 // a person's requests are few; the API server shares itself out
	config.UserAgent = fieldManager
	// In JSON, an older API server refuses fields that it does not know; in protobuf it would drop them.
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.WarningHandler = rest.NewWarningWriter(t.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	c := &client{host: config.Host, config: config}
	if c.Interface, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if c.scheduled, err = newScheduledJobs(config); err != nil {
		return nil, err
	}
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	if c.namespace, _, err = t.namespace(); err != nil {
		return nil, err
	}
	return c, nil
}

// unusable is for a kubeconfig that is missing or wrong.
func unusable(err error) error {
	return fmt.Errorf("cannot use the kubeconfig: %w: --kubeconfig or KUBECONFIG name another file, and --context one of its contexts", err)
}
