package act

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster"
	"github.com/jobstream/jobstream/internal/engine"
)

// userError is a refusal that is not the API server's: it describes what users have to change about their object. Its message
// contains names of fields, keys and lengths, never values.
type userError struct{ reason, message string }

func (e userError) Error() string { return e.message }

// isUserError returns the userError in an error, if there is one.
func isUserError(err error) (bad userError, yes bool) { return bad, errors.As(err, &bad) }

// refused classifies an error that is left once the preconditions have been checked: the server could not answer now, which is a
// Retry; or it understood the request and refused it, which is a fact.
func (a *Actor) refused(e effect.Effect, serial int, err error) ([]events.Event, error) {
	if after, yes := retriable(err); yes {
		return nil, engine.Retry{After: after, Err: fmt.Errorf("%s: %w", e, err)}
	}
	reason, message := refusal(err)
	a.log.Warn("an effect is refused; it is tried again, ever more rarely", "effect", e.String(), "reason", reason, "message", message)
	fact := events.EffectRefused{Effect: e.Kind(), Serial: serial, Name: effect.Subject(e), Reason: reason, Message: message, At: a.now()}
	return []events.Event{fact}, nil
}

// retriable reports whether the same request may succeed later without any change, and returns how long the server asks its
// clients to wait.
func retriable(err error) (after time.Duration, yes bool) {
	if _, bad := isUserError(err); bad {
		return 0, false
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return 0, true // no answer: a timeout, a broken connection, a shutdown of this process
	}
	if byAdmission(err) {
		return 0, false // a policy may refuse with any code
	}
	s := status.Status()
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		after = time.Duration(seconds) * time.Second
	}
	switch {
	case s.Code >= http.StatusInternalServerError,
		s.Code == http.StatusTooManyRequests,
		s.Code == http.StatusRequestTimeout,
		s.Code == http.StatusUnauthorized,                                             // an expired token is renewed
		s.Code == http.StatusConflict && s.Reason != metav1.StatusReasonAlreadyExists, // two creations conflicted at one quota
		s.Code == 0:
		return after, true
	}
	return 0, false
}

// refusal describes the server's refusal for every user who may see the Job. The reason fits into a condition, which takes one
// word: a webhook may have written a sentence, which is in the message anyway.
func refusal(err error) (reason, message string) {
	reason, message = refusalWords(err)
	if !conditionReason.MatchString(reason) {
		reason = string(metav1.StatusReasonForbidden)
	}
	return reason, message
}

// conditionReason matches what metav1.Condition accepts as a reason.
var conditionReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

func refusalWords(err error) (reason, message string) {
	if bad, yes := isUserError(err); yes {
		return bad.reason, cluster.Cut(bad.message)
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return string(metav1.StatusReasonUnknown), cluster.Cut("the request failed")
	}
	s := status.Status()
	reason = string(s.Reason)
	if reason == "" {
		reason = strings.ReplaceAll(http.StatusText(int(s.Code)), " ", "")
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		reason = string(corev1.NamespaceTerminatingCause)
	}
	switch {
	case byAdmission(err), s.Code == http.StatusForbidden, s.Code == http.StatusNotFound, s.Reason == metav1.StatusReasonAlreadyExists:
		return reason, cluster.Cut(s.Message)
	case s.Code == http.StatusUnprocessableEntity:
		return reason, cluster.Cut(invalidFields(s.Details))
	}
	return reason, cluster.Cut(fmt.Sprintf("the API server answered %d %s", s.Code, http.StatusText(int(s.Code))))
}

// invalidFields lists the fields that the server found invalid, and why. The server's own message shows their values, too, and
// values may be secrets.
func invalidFields(d *metav1.StatusDetails) string {
	var out []string
	for _, c := range causes(d) {
		switch {
		case c.Field != "":
			out = append(out, fmt.Sprintf("field %s: %s", c.Field, c.Type))
		case c.Type != "":
			out = append(out, string(c.Type))
		}
	}
	if len(out) == 0 {
		return "the API server finds it invalid and does not say why"
	}
	return strings.Join(out, "; ")
}

func causes(d *metav1.StatusDetails) []metav1.StatusCause {
	if d == nil {
		return nil
	}
	return d.Causes
}

// byAdmission reports whether a webhook or a policy of the cluster refused (admission/plugin/webhook/errors and
// admission/plugin/policy/validating in k8s.io/apiserver): its message is written for users, and its status code is its own.
func byAdmission(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	m := status.Status().Message
	return strings.HasPrefix(m, "admission webhook ") && strings.Contains(m, " denied the request") ||
		strings.Contains(m, " is forbidden: ValidatingAdmissionPolicy '")
}
