package act

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster"
)

// complain writes an Event about the Job or ScheduledJob for users who describe it: the API server cannot do at present what the
// object needs. The engine tries again, and nothing has to be done here; but a user may wonder why there are no Pods. client-go
// counts repetitions instead of writing them again.
func (a *Actor) complain(key events.Key, o object, e effect.Effect, err error) {
	name := o.name(cluster.IdentityOfKey(key))
	what, ok := blocked(err)
	if name == "" || !ok {
		return
	}
	r := effect.Report{Warning: true, Reason: "FailedUpdate", Message: fmt.Sprintf("%s: %s; it is tried again", e.Kind(), what)}
	switch e.(type) {
	case effect.CreatePod, effect.CreateJob:
		r.Reason, r.Message = "FailedCreate", "Error creating: "+what+"; it is tried again"
	case effect.DeletePod, effect.DeleteJob, effect.DeleteRun, effect.DeleteScheduledJob:
		r.Reason, r.Message = "FailedDelete", "Error deleting: "+what+"; it is tried again"
	}
	a.report(key, name, r)
}

// blocked describes that the API server did not answer, or answered that it cannot do the request now. A conflict of two writers
// needs no report.
func blocked(err error) (what string, ok bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "the API server did not answer", true
	}
	code := int(status.Status().Code)
	if code != http.StatusTooManyRequests && code < http.StatusInternalServerError {
		return "", false
	}
	return fmt.Sprintf("the API server answered %d %s", code, http.StatusText(code)), true
}
