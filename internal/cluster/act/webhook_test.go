package act

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

// TestAWebhookRefuses changes of Pods, in a real API server, as policy engines do: users have to learn its name.
func TestAWebhookRefuses(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("pi")
	p := w.createPod(j, key, 0)
	orphan := w.ForeignPod("orphan", j.Spec.Template.Labels)
	w.refuseUpdates("no-updates.example.com")

	for name, e := range map[string]effect.Effect{
		"RemoveFinalizer":              effect.RemoveFinalizer{Name: p.Name, UID: p.UID},
		"DeletePod, finalizer removed": effect.DeletePod{Name: p.Name, UID: p.UID, Version: p.Version, RemoveFinalizer: true},
		"ReleasePod":                   effect.ReleasePod{Name: p.Name, UID: p.UID},
		"AdoptPod, which has a serial": effect.AdoptPod{Job: "pi", Name: orphan.Name, UID: orphan.UID, Version: events.Version(orphan.ResourceVersion), Serial: 5, Hold: true},
	} {
		t.Run(name, func(t *testing.T) {
			refused := clustertest.Only[events.EffectRefused](t, w.act(key, e))
			if refused.Effect != e.Kind() || !strings.Contains(refused.Message, `admission webhook "no-updates.example.com" denied the request: hands off`) {
				t.Errorf("%+v", refused)
			}
			if want := map[bool]int{true: 5, false: events.NoSerial}[refused.Effect == "AdoptPod"]; refused.Serial != want {
				t.Errorf("serial %d", refused.Serial)
			}
		})
	}
	if live := w.LivePod(p.Name); !events.Held(live) || live.Labels[v1alpha1.ManagedLabel] != "true" {
		t.Errorf("is %+v", live.ObjectMeta)
	}
}

// refuseUpdates installs a webhook that refuses every update of a Pod of the namespace, and waits until it does.
func (w *world) refuseUpdates(name string) {
	w.Helper()
	hook := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, q *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(q.Body).Decode(&review); err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Code: http.StatusForbidden, Message: "hands off"}}
		_ = json.NewEncoder(rw).Encode(review) // the API server would report a broken answer
	}))
	w.Cleanup(hook.Close)
	_, err := w.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(w.Context(), &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"},
		Webhooks: []registrationv1.ValidatingWebhook{{
			Name: name,
			ClientConfig: registrationv1.WebhookClientConfig{URL: new(hook.URL),
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw})},
			Rules: []registrationv1.RuleWithOperations{{Operations: []registrationv1.OperationType{registrationv1.Update},
				Rule: registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.NS}},
			SideEffects:             new(registrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	probe := w.ForeignPod("probe", nil)
	clustertest.Eventually(w, func() string { // the admission plugin learns of it through a watch
		_, err := w.CoreV1().Pods(w.NS).Patch(w.Context(), probe.Name, "application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`),
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), name) {
			return "the webhook to be asked"
		}
		return ""
	})
}
