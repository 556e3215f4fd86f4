package bulk

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// scheduledJobs is the resource of ScheduledJobs.
var scheduledJobs = v1alpha1.GroupVersion.WithResource(v1alpha1.ScheduledJobResource)

// Cluster is a system with the clients that a benchmark needs, an administrator's, without a rate limit.
type Cluster struct {
	*harness.System
	dynamic  dynamic.Interface
	metadata metadata.Interface
}

// NewCluster returns the clients of a system.
func NewCluster(s *harness.System) (*Cluster, error) {
	config := rest.CopyConfig(s.REST)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	m, err := metadata.NewForConfig(s.REST)
	return &Cluster{System: s, dynamic: d, metadata: m}, err
}

// NewNamespace creates a namespace and returns its name.
func NewNamespace(ctx context.Context, s *harness.System) (string, error) {
	ns, err := s.Client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("create a namespace: %w", err)
	}
	return ns.Name, nil
}
