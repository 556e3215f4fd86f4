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

// tool holds what all commands share.
type tool struct {
	genericiooptions.IOStreams
	config *genericclioptions.ConfigFlags
	// suffix returns the end of a generated name, a new one at each call.
	suffix func() string
	// takeUpTimeout is how long jobstream may take to process a new object before the plugin warns that it does not. It usually takes a
	// tenth of a second.
	takeUpTimeout time.Duration
	// completionTime is the longest that a user who presses Tab waits.
	completionTime time.Duration
	// now is the clock against which ages are measured.
	now func() time.Time
}

func newTool(streams genericiooptions.IOStreams) *tool {
	return &tool{IOStreams: streams, config: genericclioptions.NewConfigFlags(true),
		suffix: func() string { return rand.String(5) }, takeUpTimeout: 5 * time.Second,
		completionTime: 1500 * time.Millisecond, now: time.Now}
}

// client talks to the API server that the kubeconfig and the flags select.
type client struct {
	kubernetes.Interface
	scheduled scheduledJobs
	dynamic   dynamic.Interface
	// namespace is the user's namespace.
	namespace string
	host      string
	config    *rest.Config // from which the other clients were made
}

// namespace returns the user's namespace, and reports whether a flag set it.
func (t *tool) namespace() (name string, explicit bool, err error) {
	return t.config.ToRawKubeConfigLoader().Namespace()
}

// connect makes the clients. It sends no request.
func (t *tool) connect() (*client, error) {
	config, err := t.config.ToRESTConfig()
	if err != nil {
		return nil, unusable(err)
	}
	config.QPS = -1 // a user sends few requests, and the API server's own fairness limits them
	config.UserAgent = fieldManager
	// With JSON, an older API server rejects fields it does not know; with protobuf it would drop them.
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

// unusable explains a kubeconfig that is missing or wrong.
func unusable(err error) error {
	return fmt.Errorf("cannot use the kubeconfig: %w: --kubeconfig or KUBECONFIG name another file, and --context one of its contexts", err)
}
