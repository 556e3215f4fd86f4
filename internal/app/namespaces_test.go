package app

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/internal/app/apptest"
)

// namespaced makes the API server list the namespace open, and refuse the namespace closed.
func namespaced(t *testing.T) *apptest.API {
	t.Helper()
	api := apptest.Start(t)
	for _, path := range []string{"/apis/batch/v1/", "/api/v1/"} {
		for _, kind := range []string{"jobs", "pods"} {
			api.HandleFunc("GET "+path+"namespaces/open/"+kind, func(w http.ResponseWriter, r *http.Request) {
				r.URL.Path = path + kind
				api.ServeHTTP(w, r)
			})
		}
		api.HandleFunc("GET "+path+"namespaces/closed/{kind}", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			apptest.Answer(w, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
				Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden})
		})
	}
	return api
}

// A trigger is ready although one of its namespaces may not be listed; if that is all of them it is not, and says why.
func TestTriggerOfNamespacesThatItMayNotList(t *testing.T) {
	c := TriggerDefaults()
	c.Options = options(t, namespaced(t))
	c.Namespaces = []string{"open", "closed"}
	stop, ended := run(t, func(ctx context.Context) error { return RunTrigger(ctx, c) })
	awaitReady(t, c.Probes, ended)
	stop()
	awaitEnd(t, ended)

	c.Options = options(t, namespaced(t))
	c.Namespaces = []string{"closed"}
	stop, ended = run(t, func(ctx context.Context) error { return RunTrigger(ctx, c) })
	for deadline := time.Now().Add(soon); ; {
		report, ready := c.Probes.Report(t.Context())
		if ready {
			t.Fatal("it is ready, and sees nothing")
		}
		if strings.Contains(report, "the API server does not allow the trigger to list") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(report)
		}
	}
	stop()
	awaitEnd(t, ended)
}
