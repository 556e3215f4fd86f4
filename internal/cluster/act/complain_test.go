package act

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/jobstream/jobstream/internal/engine"
)

func TestWhatBlocksAJobIsReported(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for _, c := range []struct {
		name, want string
		err        error
	}{
		{"busy", "the API server answered 429 Too Many Requests", apierrors.NewTooManyRequestsError("busy")},
		{"broken", "the API server answered 500 Internal Server Error", apierrors.NewInternalError(errors.New("x"))},
		{"no answer", "the API server did not answer", errors.New("connection refused")},
		{"two writers", "", apierrors.NewConflict(pods, "p", errors.New("x"))},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, ok := blocked(engine.Retry{Err: c.err}); got != c.want || ok != (c.want != "") {
				t.Errorf("got %q, %v", got, ok)
			}
		})
	}
}
