// Package apptest plays the API server of an empty cluster, for tests of how programs start and end. What they do to Jobs
// is tested on a real one.
package apptest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/jobstream/jobstream/internal/dev/port"
)

// API is an API server that knows its version, allows every request, has empty lists, and watches without changes.
type API struct {
	*http.ServeMux // for what a test wants to add
	// URL is its address, Kubeconfig a file with that address.
	URL, Kubeconfig string
}

// Start starts an API server that ends with the test.
func Start(t testing.TB) *API {
	t.Helper()
	return StartVersion(t, 36)
}

func at(minor int) version.Info {
	return version.Info{Major: "1", Minor: strconv.Itoa(minor), GitVersion: fmt.Sprintf("v1.%d.3", minor)}
}

// StartVersion starts an API server that reports this minor version of Kubernetes 1.
func StartVersion(t testing.TB, minor int) *API {
	t.Helper()
	a := &API{ServeMux: http.NewServeMux()}
	ended := make(chan struct{})
	a.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) { Answer(w, at(minor)) })
	a.HandleFunc("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", func(w http.ResponseWriter, _ *http.Request) {
		Answer(w, authorizationv1.SelfSubjectAccessReview{TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
			Status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}})
	})
	now := metav1.ListMeta{ResourceVersion: "1"}
	for path, list := range map[string]any{
		"GET /apis/batch/v1/jobs": batchv1.JobList{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "JobList"}, ListMeta: now},
		"GET /api/v1/pods":        corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: now},
	} {
		a.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("watch") == "" {
				Answer(w, list)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-ended:
			}
		})
	}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(ended) }) // before the server, which waits for its watches
	a.URL, a.Kubeconfig = server.URL, Kubeconfig(t, server.URL)
	return a
}

// FreeAddress returns a free address on loopback, and none twice.
func FreeAddress(t testing.TB) string {
	t.Helper()
	free, err := port.Free()
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(free))
}

// Answer writes an object.
func Answer(w http.ResponseWriter, o any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(o)
}

// Kubeconfig writes a kubeconfig for an API server that asks for no credentials.
func Kubeconfig(t testing.TB, url string) string {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["test"] = &clientcmdapi.Cluster{Server: url}
	c.Contexts["test"] = &clientcmdapi.Context{Cluster: "test"}
	c.CurrentContext = "test"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		t.Fatal(err)
	}
	return path
}
