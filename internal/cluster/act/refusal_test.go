package act

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
	"github.com/jobstream/jobstream/internal/engine"
)

var podResource = schema.GroupResource{Resource: "pods"}

func statusError(code int32, reason metav1.StatusReason, message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: "Failure", Code: code, Reason: reason, Message: message}}
}

func TestRefused(t *testing.T) {
	secret := field.ErrorList{
		field.Invalid(field.NewPath("spec", "containers").Index(0).Child("image"), "s3cret", "bad s3cret"),
		field.Required(field.NewPath("spec", "restartPolicy"), "s3cret"),
	}
	terminating := apierrors.NewForbidden(podResource, "p", errors.New("unable to create new content in namespace x because it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause, Message: "m"}}
	policy := apierrors.NewForbidden(podResource, "p", errors.New("ValidatingAdmissionPolicy 'a' with binding 'b' denied request: no latest"))
	policy.ErrStatus.Reason, policy.ErrStatus.Code = metav1.StatusReasonInvalid, 422
	policy.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: "no latest"}}

	fieldless := statusError(422, metav1.StatusReasonInvalid, "s3cret")
	fieldless.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeForbidden}, {Message: "s3cret"}, {Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.a"}}}

	sentence := apierrors.NewForbidden(podResource, "p", errors.New(`admission webhook "images.example.com" denied the request: image is not signed`))
	sentence.ErrStatus.Reason = "image is not signed" // what a webhook writes there comes through

	for _, c := range []struct {
		name            string
		err             error
		retry           bool
		after           time.Duration
		reason, message string
	}{
		{name: "timeout", err: context.DeadlineExceeded, retry: true},
		{name: "this process ends", err: context.Canceled, retry: true},
		{name: "connection", err: errors.New("connection refused"), retry: true},
		{name: "429", err: apierrors.NewTooManyRequests("wait", 7), retry: true, after: 7 * time.Second},
		{name: "429, wrapped", err: fmt.Errorf("create: %w", apierrors.NewTooManyRequests("wait", 7)), retry: true, after: 7 * time.Second},
		{name: "500", err: apierrors.NewInternalError(errors.New("failed calling webhook")), retry: true},
		{name: "503", err: apierrors.NewServiceUnavailable("x"), retry: true},
		{name: "server timeout", err: apierrors.NewServerTimeout(podResource, "create", 2), retry: true, after: 2 * time.Second},
		{name: "401", err: apierrors.NewUnauthorized("x"), retry: true},
		{name: "two met at a quota", err: apierrors.NewConflict(schema.GroupResource{Resource: "resourcequotas"}, "q", errors.New("x")), retry: true},
		{name: "quota", err: apierrors.NewForbidden(podResource, "p", errors.New("exceeded quota: q")),
			reason: "Forbidden", message: `pods "p" is forbidden: exceeded quota: q`},
		{name: "a webhook's own reason, which no condition takes", err: sentence,
			reason: "Forbidden", message: `pods "p" is forbidden: admission webhook "images.example.com" denied the request: image is not signed`},
		{name: "namespace terminating", err: terminating,
			reason: "NamespaceTerminating", message: `pods "p" is forbidden: unable to create new content in namespace x because it is being terminated`},
		{name: "no namespace", err: apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "n"),
			reason: "NotFound", message: `namespaces "n" not found`},
		{name: "invalid", err: apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", secret),
			reason: "Invalid", message: "field spec.containers[0].image: FieldValueInvalid; field spec.restartPolicy: FieldValueRequired"},
		{name: "invalid without causes", err: statusError(422, metav1.StatusReasonInvalid, "s3cret"),
			reason: "Invalid", message: "the API server finds it invalid and does not say why"},
		{name: "invalid, without the field", err: fieldless,
			reason: "Invalid", message: "FieldValueForbidden; field spec.a: FieldValueInvalid"},
		{name: "invalid, and its value looks like a webhook's answer", err: statusError(422, metav1.StatusReasonInvalid, `Pod "p" is invalid: s3cret denied the request`),
			reason: "Invalid", message: "the API server finds it invalid and does not say why"},
		{name: "bad request, and its text begins like a webhook's answer", err: statusError(400, "", `admission webhook "s3cret": `),
			reason: "BadRequest", message: "the API server answered 400 Bad Request"},
		{name: "policy", err: policy,
			reason: "Invalid", message: `pods "p" is forbidden: ValidatingAdmissionPolicy 'a' with binding 'b' denied request: no latest`},
		{name: "webhook", err: statusError(400, "", `admission webhook "w" denied the request: no`),
			reason: "BadRequest", message: `admission webhook "w" denied the request: no`},
		{name: "webhook that answers 500", err: statusError(500, metav1.StatusReasonInternalError, `admission webhook "w" denied the request: no`),
			reason: "InternalError", message: `admission webhook "w" denied the request: no`},
		{name: "webhook that answers conflict", err: statusError(409, metav1.StatusReasonConflict, `admission webhook "w" denied the request: no`),
			reason: "Conflict", message: `admission webhook "w" denied the request: no`},
		{name: "bad request", err: apierrors.NewBadRequest("s3cret"), reason: "BadRequest", message: "the API server answered 400 Bad Request"},
		{name: "too large", err: apierrors.NewRequestEntityTooLargeError("s3cret"),
			reason: "RequestEntityTooLarge", message: "the API server answered 413 Request Entity Too Large"},
		{name: "taken", err: apierrors.NewAlreadyExists(podResource, "p"), reason: "AlreadyExists", message: `pods "p" already exists`},
		{name: "long", err: apierrors.NewForbidden(podResource, "p", errors.New(strings.Repeat("ü", 1000))),
			reason: "Forbidden", message: `pods "p" is forbidden: ` + strings.Repeat("ü", 499) + "..."},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &Actor{log: slog.New(slog.DiscardHandler), now: func() time.Time { return time.Unix(5, 0) }}
			facts, err := a.refused(effect.CreatePod{Name: "p", Index: events.NoIndex}, 3, c.err)
			retry := engine.Retry{}
			if errors.As(err, &retry) != c.retry || retry.After != c.after {
				t.Fatalf("error %#v", err)
			}
			if c.retry {
				if !errors.Is(err, c.err) && !strings.Contains(err.Error(), c.err.Error()) {
					t.Errorf("the cause is lost: %v", err)
				}
				return
			}
			want := events.EffectRefused{Effect: "CreatePod", Serial: 3, Reason: c.reason, Message: c.message, At: time.Unix(5, 0)}
			if got := clustertest.Only[events.EffectRefused](t, facts); got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			if len(c.message) > 1024 {
				t.Errorf("%d bytes", len(c.message))
			}
		})
	}
}

// TestClientGoDoesNotRetry checks that client-go does not wait and retry by itself.
func TestClientGoDoesNotRetry(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("pi")
	w.createPod(j, key, 0) // the Job is cached
	post := "POST /api/v1/namespaces/" + w.NS + "/pods"
	for _, c := range []struct {
		name  string
		fault func(*http.Request) (*http.Response, error)
		after time.Duration
	}{
		{"429 of the server's filter", func(q *http.Request) (*http.Response, error) {
			// The filters of the API server answer in plain text.
			return &http.Response{StatusCode: 429, Request: q, Header: http.Header{"Retry-After": {"1"}, "Content-Type": {"text/plain"}},
				Body: io.NopCloser(strings.NewReader("Too many requests, please try again later.\n"))}, nil
		}, time.Second},
		{"503 of a proxy", func(q *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 503, Request: q, Header: http.Header{"Retry-After": {"9"}, "Content-Type": {"text/plain"}},
				Body: io.NopCloser(strings.NewReader("no backend\n"))}, nil
		}, 9 * time.Second},
		{"429 of the server itself", func(q *http.Request) (*http.Response, error) {
			return clustertest.Answer(q, 429, apierrors.NewTooManyRequests("slow down", 4).ErrStatus), nil
		}, 4 * time.Second},
		{"504 with a time", func(q *http.Request) (*http.Response, error) {
			return clustertest.Answer(q, 504, apierrors.NewTimeoutError("it takes long", 3).ErrStatus), nil
		}, 3 * time.Second},
		{"500", func(q *http.Request) (*http.Response, error) {
			return clustertest.Answer(q, 500, metav1.Status{Status: "Failure", Code: 500, Reason: metav1.StatusReasonInternalError}), nil
		}, 0},
		{"connection", func(*http.Request) (*http.Response, error) { return nil, errors.New("connection reset by peer") }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.Requests.Inject(c.fault)
			before := w.Requests.Count(post)
			_, err := w.actor.Act(t.Context(), key, clustertest.CreateEffect(j, 1))
			if retry := (engine.Retry{}); !errors.As(err, &retry) || retry.After != c.after {
				t.Errorf("%#v", err)
			}
			if n := w.Requests.Count(post) - before; n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
	t.Run("one request's time", func(t *testing.T) {
		w.actor.timeout = 30 * time.Millisecond
		w.Requests.Inject(func(q *http.Request) (*http.Response, error) { <-q.Context().Done(); return nil, q.Context().Err() })
		_, err := w.actor.Act(t.Context(), key, clustertest.CreateEffect(j, 1))
		if retry := (engine.Retry{}); !errors.As(err, &retry) {
			t.Errorf("%#v", err)
		}
	})
}

func TestUnknownEffect(t *testing.T) {
	a := &Actor{}
	if _, err := a.Act(t.Context(), events.Key{Function: job.Name}, effect.SetTimer{Name: "x"}); err == nil || !strings.Contains(err.Error(), "SetTimer") {
		t.Errorf("%v", err)
	}
}
