package main

import (
	"net/http"
	"testing"
)

// Names are those of the API server's metric, so that the two counts stand side by side.
func TestNamesOfRequests(t *testing.T) {
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/apis/batch/v1/namespaces/team-1/jobs/long-000001", "GET jobs"},
		{"GET", "/apis/batch/v1/jobs?limit=500", "LIST jobs"},
		{"GET", "/api/v1/pods?watch=true", "WATCH pods"},
		{"POST", "/api/v1/namespaces/team-1/pods", "POST pods"},
		{"PUT", "/apis/batch/v1/namespaces/team-1/jobs/long-000001/status", "PUT jobs/status"},
		{"PATCH", "/apis/jobstream.dev/v1alpha1/namespaces/team-1/scheduledjobs/s-000001/status", "PATCH scheduledjobs/status"},
		{"DELETE", "/api/v1/namespaces/team-1/pods/a", "DELETE pods"},
		{"DELETE", "/api/v1/namespaces/team-1/pods", "DELETECOLLECTION pods"},
		{"GET", "/version", ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, "https://127.0.0.1"+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := nameOf(r); got != c.want {
			t.Errorf("%s %s is %q, want %q", c.method, c.path, got, c.want)
		}
	}
}

func TestRequestsAreCountedByProgram(t *testing.T) {
	counts := &traffic{counts: map[string]map[string]float64{}}
	for _, agent := range []string{"jobstream-trigger/v1", "jobstream-reconciler/v1", "jobstream-reconciler/v1", "kube-controller-manager"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1/api/v1/namespaces/a/pods/b", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("User-Agent", agent)
		if counts.see(nil, r) {
			t.Error("a request is answered")
		}
	}
	now := counts.now()
	if now["trigger"]["GET pods"] != 1 || now["reconciler"]["GET pods"] != 2 || len(now) != 2 {
		t.Errorf("counted are %v", now)
	}
}
