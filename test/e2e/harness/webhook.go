package harness

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

var errNotInForce = errors.New("a Pod may lose its finalizers")

// Webhook is a validating webhook of a cluster's administrator. It receives every change of a Pod in one namespace.
type Webhook struct {
	// Name is how the API server names it in its refusals.
	Name string

	mu      sync.Mutex
	forbids func(old, now *corev1.Pod) (why string)
	refused int
}

// Forbid sets what is refused from now on, and why; nil allows everything.
func (w *Webhook) Forbid(forbids func(old, now *corev1.Pod) (why string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forbids = forbids
}

// Refused returns how many changes have been refused.
func (w *Webhook) Refused() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refused
}

// Webhook registers a webhook for the Pods of the namespace. It is removed with the test.
func (p *Space) Webhook(name string) *Webhook {
	p.Helper()
	w := &Webhook{Name: name}
	server := httptest.NewTLSServer(w)
	p.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	configurations := p.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: p.Namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    name,
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: &server.URL, CABundle: authority},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: p.Namespace}},
			FailurePolicy:           ptr.To(admissionregistrationv1.Fail),
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	}
	if _, err := configurations.Create(p.Context(), c, metav1.CreateOptions{}); err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() {
		if err := configurations.Delete(context.Background(), p.Namespace, metav1.DeleteOptions{}); err != nil {
			p.Error(err)
		}
	})
	return w
}

// ServeHTTP answers the API server.
func (w *Webhook) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	var review admissionv1.AdmissionReview
	var old, now corev1.Pod
	err := json.NewDecoder(in.Body).Decode(&review)
	if err == nil {
		err = json.Unmarshal(review.Request.OldObject.Raw, &old)
	}
	if err == nil {
		err = json.Unmarshal(review.Request.Object.Raw, &now)
	}
	if err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	why := w.judge(&old, &now, ptr.Deref(review.Request.DryRun, false))
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: why == ""}
	if why != "" {
		review.Response.Result = &metav1.Status{Message: why}
	}
	review.Request = nil
	out.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(out).Encode(review) // fails if the API server has closed the connection, and then has no reader
}

func (w *Webhook) judge(old, now *corev1.Pod, dryRun bool) (why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.forbids != nil {
		why = w.forbids(old, now)
	}
	if why != "" && !dryRun {
		w.refused++
	}
	return why
}

// AwaitForce waits until the API server calls the webhook: until it would refuse to let the Pod lose its finalizers.
func (w *Webhook) AwaitForce(t testing.TB, p *Space, pod string) {
	t.Helper()
	Until(t, readyTimeout, "the webhook to be in force", func(ctx context.Context) error {
		_, err := p.Client.CoreV1().Pods(p.Namespace).Patch(ctx, pod, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return errNotInForce
		}
		return nil
	})
}
