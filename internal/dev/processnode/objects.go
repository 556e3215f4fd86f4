package processnode

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// apiObjects reads ConfigMaps and Secrets live, so that a container sees what is there when it starts.
type apiObjects struct{ client kubernetes.Interface }

func (o apiObjects) configMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error) {
	return o.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
}

func (o apiObjects) secret(ctx context.Context, namespace, name string) (*v1.Secret, error) {
	return o.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
}

func optional(p *bool) bool { return p != nil && *p }

// missing means that a key is not in its ConfigMap or Secret.
type missing struct{ key, kind, namespace, name string }

func (m missing) Error() string {
	return fmt.Sprintf("couldn't find key %s in %s %s/%s", m.key, m.kind, m.namespace, m.name)
}

// unless ignores a missing object or key if the reference is optional. It ignores nothing else: a lost connection must not start
// a container without its configuration.
func unless(optional bool, err error) error {
	var key missing
	if optional && (apierrors.IsNotFound(err) || errors.As(err, &key)) {
		return nil
	}
	return err
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
