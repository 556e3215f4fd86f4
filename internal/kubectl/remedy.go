package kubectl

import (
	"errors"
	"fmt"
	"net"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/kubectl/run"
)

// refused explains why the API server rejected the creation of an object, and what to do.
func (c *client) refused(o run.Object, err error) error {
	kind, resource := kindOf(o)
	cannot := fmt.Sprintf("cannot create the %s %s", kind, o.GetName())
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return c.unreachable(cannot, err)
	}
	remedy := ""
	switch {
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("a %s %s exists already in the namespace %s: choose another name, or delete that one first with: kubectl delete %s %s -n %s",
			kind, o.GetName(), c.namespace, resource, o.GetName(), c.namespace)
	case apierrors.IsNotFound(err) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces":
		remedy = fmt.Sprintf("choose a namespace with -n, or create this one with: kubectl create namespace %s", c.namespace)
	case apierrors.IsNotFound(err) && kind == v1alpha1.ScheduledJobKind:
		return fmt.Errorf("%s: this cluster does not know the kind: ask an administrator to install it with: kubectl apply -k deploy/crd", cannot)
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
		remedy = "a quota of the namespace is used up: delete what is finished, or ask for more"
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return c.answered(cannot, err)
	case apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "unknown field"):
		remedy = "this cluster is too old: jobstream needs Kubernetes 1.35 or newer"
	}
	if remedy == "" {
		return fmt.Errorf("%s: %w", cannot, err)
	}
	return fmt.Errorf("%s: %w: %s", cannot, err, remedy)
}

// answered explains an error response of the API server to any request, and what to do.
func (c *client) answered(cannot string, err error) error {
	switch status := apierrors.APIStatus(nil); {
	case !errors.As(err, &status):
		return c.unreachable(cannot, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: %w: list your permissions with: kubectl auth can-i --list -n %s", cannot, err, c.namespace)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s: %w: the credentials in the kubeconfig are not accepted: log in again, or choose another context with --context", cannot, err)
	}
	return fmt.Errorf("%s: %w", cannot, err)
}

// unreachable explains a request without a response.
func (c *client) unreachable(cannot string, err error) error {
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		return fmt.Errorf("%s: cannot reach the API server at %s: %w: try \"kubectl version\"; --kubeconfig and --context choose another cluster", cannot, c.host, op)
	}
	return fmt.Errorf("%s: the API server at %s: %w", cannot, c.host, err)
}

// kindOf returns an object's kind, and the resource name that kubectl uses.
func kindOf(o run.Object) (kind, resource string) {
	kind = o.GetObjectKind().GroupVersionKind().Kind
	return kind, strings.ToLower(kind)
}
