package cluster

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestNewClientWithoutACluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("clusters: []"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		config ClientConfig
		want   string
	}{
		{ClientConfig{}, "name a kubeconfig file"},
		{ClientConfig{Kubeconfig: "/does/not/exist"}, "/does/not/exist"},
		{ClientConfig{Kubeconfig: broken}, broken},
		{ClientConfig{Kubeconfig: broken, Context: "nowhere"}, "nowhere"},
	} {
		if _, _, err := NewClient(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.config, err)
		}
	}
}

func TestNewClient(t *testing.T) {
	client, config, err := NewClient(ClientConfig{Kubeconfig: realCluster(t).Kubeconfig()})
	if err != nil {
		t.Fatal(err)
	}
	if config.QPS != -1 || config.UserAgent != "jobstream" || config.ContentType != "application/vnd.kubernetes.protobuf" {
		t.Errorf("QPS %v, user agent %q, content type %q", config.QPS, config.UserAgent, config.ContentType)
	}
	log := &safeBuffer{}
	if _, err := Check(t.Context(), client, slog.New(slog.NewTextHandler(log, nil))); err != nil || log.String() != "" {
		t.Errorf("%v %s", err, log)
	}
}

func TestCheckFails(t *testing.T) {
	deaf := httptest.NewServer(http.NotFoundHandler())
	gone := deaf.URL
	deaf.Close()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	defer page.Close()
	for url, want := range map[string]string{gone: "cannot reach the API server", page.URL: "no Kubernetes API server"} {
		client, err := kubernetes.NewForConfig(&rest.Config{Host: url})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Check(t.Context(), client, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestVersionWarning(t *testing.T) {
	for _, c := range []struct{ major, minor, want string }{
		{"1", "36", ""},
		{"1", "35+", ""},
		{"1", "34", "older than Kubernetes 1.35"},
		{"1", "31", "older than Kubernetes 1.32"},
		{"", "", "unknown"},
		{"2", "0", "unknown"},
	} {
		if got := versionWarning(version.Info{Major: c.major, Minor: c.minor}); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s.%s: %q", c.major, c.minor, got)
		}
	}
}
