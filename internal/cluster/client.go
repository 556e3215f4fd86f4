package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jobstream/jobstream/internal/apiserver"
)

const (
	// defaultUserAgent is also the field manager of writes, up to the first slash.
	defaultUserAgent = "jobstream"
	// checkTimeout is long enough for a slow TLS handshake and short enough for a waiting user.
	checkTimeout = 10 * time.Second
)

// ClientConfig describes how to reach the API server. The zero value is that of a Pod in the cluster.
type ClientConfig struct {
	// Kubeconfig is the path of a kubeconfig file, or of several as in $KUBECONFIG; "" means the service account of the Pod in
	// which this program runs.
	Kubeconfig string
	// Context is a context of the kubeconfig; "" means its current one.
	Context string
	// UserAgent names this program in audit logs and in field ownership; "" means "jobstream".
	UserAgent string
}

// NewClient makes a client that speaks protobuf and has no rate limit of its own: the Actor bounds concurrency, and the API
// server's priority and fairness decides which requests wait. NewClient also returns the rest.Config of the client. It sends no
// request: see Check.
func NewClient(c ClientConfig) (kubernetes.Interface, *rest.Config, error) {
	config, err := c.load()
	if err != nil {
		return nil, nil, err
	}
	config.QPS = -1
	config.UserAgent = c.UserAgent
	if config.UserAgent == "" {
		config.UserAgent = defaultUserAgent
	}
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	// The API server warns about deprecated fields of a template once for every Pod; it has warned the Job's author already.
	config.WarningHandler = rest.NoWarnings{}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("make a Kubernetes client for %s: %w", config.Host, err)
	}
	return client, config, nil
}

func (c ClientConfig) load() (*rest.Config, error) {
	if c.Kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, errors.New("no kubeconfig was named, and this is not a Pod of a cluster " +
				"(KUBERNETES_SERVICE_HOST is not set): name a kubeconfig file")
		}
		if err != nil {
			return nil, fmt.Errorf("read the Pod's service account: %w: is automountServiceAccountToken off?", err)
		}
		return config, nil
	}
	loader, err := c.loader()
	if err != nil {
		return nil, err
	}
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w: see \"kubectl config view\"", c.Kubeconfig, err)
	}
	return config, nil
}

// loader reads the file, or merges several as kubectl does, which ignores missing ones.
func (c ClientConfig) loader() (clientcmd.ClientConfig, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: c.Kubeconfig}
	if files := filepath.SplitList(c.Kubeconfig); len(files) > 1 {
		rules = &clientcmd.ClientConfigLoadingRules{Precedence: files}
	} else if _, err := os.Stat(c.Kubeconfig); err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w: name a file that exists, or none inside of a cluster", err)
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: c.Context}), nil
}

// KubectlConfig returns the kubeconfig that kubectl uses: the given one, otherwise $KUBECONFIG, otherwise ~/.kube/config if it
// exists, otherwise "".
func KubectlConfig(given string) string {
	for _, path := range []string{given, os.Getenv(clientcmd.RecommendedConfigPathEnvVar)} {
		if path != "" {
			return path
		}
	}
	if _, err := os.Stat(clientcmd.RecommendedHomeFile); err != nil {
		return ""
	}
	return clientcmd.RecommendedHomeFile
}

// CurrentContext returns the name of the context that NewClient uses, "" if there is no kubeconfig.
func (c ClientConfig) CurrentContext() string {
	if c.Context != "" || c.Kubeconfig == "" {
		return c.Context
	}
	loader, err := c.loader()
	if err != nil {
		return ""
	}
	raw, err := loader.RawConfig()
	if err != nil {
		return ""
	}
	return raw.CurrentContext
}

// Check requests the API server's version and returns it. It fails if the server cannot be reached or rejects the credentials,
// and warns if it is too old to hand Jobs over by spec.managedBy.
func Check(ctx context.Context, client kubernetes.Interface, log *slog.Logger) (v version.Info, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	request := client.Discovery().RESTClient().Get().AbsPath("/version")
	body, err := request.MaxRetries(0).Do(ctx).Raw()
	if err != nil {
		return v, fmt.Errorf("cannot reach the API server at %s: %w: is it up, and is this the right address and credential?",
			request.URL().Host, err)
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return v, fmt.Errorf("what answers at %s is no Kubernetes API server: %w: is this the right address?",
			request.URL().Host, err)
	}
	if w := apiserver.VersionWarning(v); w != "" {
		log.Warn(w, "version", v.GitVersion)
	}
	return v, nil
}
