package cluster_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jobstream/jobstream/internal/cluster"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

func TestNewClientWithoutACluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("clusters: []"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		config cluster.ClientConfig
		want   string
	}{
		{cluster.ClientConfig{}, "name a kubeconfig file"},
		{cluster.ClientConfig{Kubeconfig: "/does/not/exist"}, "/does/not/exist"},
		{cluster.ClientConfig{Kubeconfig: broken}, broken},
		{cluster.ClientConfig{Kubeconfig: broken, Context: "nowhere"}, "nowhere"},
	} {
		if _, _, err := cluster.NewClient(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.config, err)
		}
	}
}

// A kubeconfig is found and merged as kubectl does it.
func TestKubeconfigAsKubectlHasIt(t *testing.T) {
	const east = "apiVersion: v1\nkind: Config\ncurrent-context: east\ncontexts: [{name: east, context: {cluster: east}}]\nclusters: [{name: east, cluster: {server: 'http://east'}}]\n"
	dir := t.TempDir()
	for name, text := range map[string]string{"east": east, "west": strings.ReplaceAll(east, "east", "west")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	eastFile, list := filepath.Join(dir, "east"), strings.Join([]string{filepath.Join(dir, "missing"), filepath.Join(dir, "west"), filepath.Join(dir, "east")}, string(os.PathListSeparator))
	for _, tt := range []struct {
		name              string
		given, env        string
		context           string
		wantHost, wantCon string
	}{
		{"the file that is given", eastFile, list, "", "http://east", "east"},
		{"the list in the environment: the first file that names the current context", "", list, "", "http://west", "west"},
		{"a context of another file of the list", "", list, "east", "http://east", "east"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", tt.env)
			c := cluster.ClientConfig{Kubeconfig: cluster.KubectlConfig(tt.given), Context: tt.context}
			_, config, err := cluster.NewClient(c)
			if err != nil || config.Host != tt.wantHost || c.CurrentContext() != tt.wantCon {
				t.Errorf("%v, %v, context %q", config, err, c.CurrentContext())
			}
		})
	}
}

func TestNewClient(t *testing.T) {
	client, config, err := cluster.NewClient(cluster.ClientConfig{Kubeconfig: clustertest.ControlPlane(t).Kubeconfig()})
	if err != nil {
		t.Fatal(err)
	}
	if config.QPS != -1 || config.UserAgent != "jobstream" || config.ContentType != "application/vnd.kubernetes.protobuf" {
		t.Errorf("QPS %v, user agent %q, content type %q", config.QPS, config.UserAgent, config.ContentType)
	}
	log := &clustertest.Buffer{}
	if _, err := cluster.Check(t.Context(), client, slog.New(slog.NewTextHandler(log, nil))); err != nil || log.String() != "" {
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
		if _, err := cluster.Check(t.Context(), client, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
