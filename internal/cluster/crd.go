package cluster

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/deploy"
)

// definitions is the resource of CustomResourceDefinitions. Their generated client would be one more module, for one object.
var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// servedAfter is the pause between two checks whether the API server serves a new kind, which takes some tenths of a second.
const servedAfter = 50 * time.Millisecond

// InstallScheduledJobs makes the API server serve ScheduledJobs, and returns when it does. It may be repeated; the rules of
// another version may then hold for a moment longer. It omits what deploy/crd adds: the roles for users of the kind.
func InstallScheduledJobs(ctx context.Context, config *rest.Config) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client for %s: %w", config.Host, err)
	}
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(deploy.ScheduledJobs, definition); err != nil {
		return fmt.Errorf("read the definition of ScheduledJob: %w", err)
	}
	name := definition.GetName()
	if _, err := client.Resource(definitions).Apply(ctx, name, definition, metav1.ApplyOptions{FieldManager: defaultUserAgent, Force: true}); err != nil {
		return fmt.Errorf("apply the definition %s: %w", name, err)
	}
	again := time.NewTicker(servedAfter)
	defer again.Stop()
	for {
		missing := served(ctx, client, name)
		if missing == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), missing)
		}
	}
}

// served returns nil when ScheduledJobs are served as the definition declares, otherwise the reason. The API server sets the
// condition Established first, and serves the kind a moment later.
func served(ctx context.Context, client dynamic.Interface, definition string) error {
	live, err := client.Resource(definitions).Get(ctx, definition, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get the definition %s: %w", definition, err)
	}
	conditions, _, err := unstructured.NestedSlice(live.Object, "status", "conditions")
	if err != nil {
		return fmt.Errorf("read the definition %s: %w", definition, err)
	}
	said := "nothing yet"
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Established" {
			if c["status"] == string(metav1.ConditionTrue) {
				_, err := client.Resource(v1alpha1.GroupVersion.WithResource(v1alpha1.ScheduledJobResource)).List(ctx, metav1.ListOptions{Limit: 1})
				return err
			}
			said = fmt.Sprint(c["message"])
		}
	}
	return fmt.Errorf("the definition %s is not established: %s", definition, said)
}
