package controlplane_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jobstream/jobstream/internal/dev/controlplane"
	"github.com/jobstream/jobstream/internal/dev/controlplane/assets"
	"github.com/jobstream/jobstream/internal/dev/controlplane/controlplanetest"
	"github.com/jobstream/jobstream/internal/dev/port"
)

func clientOf(t *testing.T, cp *controlplane.ControlPlane) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(cp.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func newJob(name string) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "main", Image: "true"}},
		}}},
	}
}

// podsOf expects the Pods that a Job controller made for a Job.
func podsOf(ctx context.Context, client kubernetes.Interface, job string, want int) error {
	pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + job})
	if err != nil {
		return err
	}
	if len(pods.Items) != want {
		return fmt.Errorf("job %s has %d pods, want %d", job, len(pods.Items), want)
	}
	return nil
}

func TestBuiltInControllerCreatesPodOfJob(t *testing.T) {
	t.Parallel()
	began := time.Now()
	cp := controlplanetest.Start(t, controlplane.Config{ControllerManager: true, AuditLog: true})
	t.Logf("started in %v", time.Since(began).Round(10*time.Millisecond))

	config, err := clientcmd.BuildConfigFromFlags("", cp.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if got := version.GitVersion; got != "v"+assets.KubernetesVersion && os.Getenv(assets.EnvAssets) == "" {
		t.Errorf("the server reports the version %s", got)
	}
	if _, err := client.BatchV1().Jobs("default").Create(t.Context(), newJob("plain"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Minute, func() error { return podsOf(t.Context(), client, "plain", 1) })
	eventually(t, 5*time.Minute, func() error {
		audit, err := os.ReadFile(cp.AuditLog())
		if err == nil && !strings.Contains(string(audit), `"subresource":"status"`) {
			err = fmt.Errorf("no status write in %s", cp.AuditLog())
		}
		return err
	})
	metrics, err := client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil || !strings.Contains(string(metrics), "apiserver_request_total") {
		t.Errorf("metrics of the API server: %v", err)
	}
}

func TestStopLeavesNothing(t *testing.T) {
	t.Parallel()
	cp, err := controlplane.Start(t.Context(), controlplane.Config{ControllerManager: true, UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	running := processesOf(t, cp.Dir())
	if err := cp.Stop(); err != nil {
		t.Fatal(err)
	}
	if len(running) != 3 {
		t.Errorf("%d processes ran, want 3: %v", len(running), running)
	}
	if left := processesOf(t, cp.Dir()); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	if _, err := os.Stat(cp.Dir()); !os.IsNotExist(err) {
		t.Errorf("folder %s is left: %v", cp.Dir(), err)
	}
	for _, address := range []string{cp.URL(), cp.ControllerManagerURL()} {
		where, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if conn, err := net.Dial("tcp", where.Host); err == nil {
			conn.Close()
			t.Errorf("%s still answers", address)
		}
	}
	if err := cp.StartAPIServer(t.Context()); err == nil {
		t.Error("a stopped control plane starts an API server")
	}
}

// Another program may take a port between its choice and its use. Start then chooses another one, also where the API server has a
// port that was asked for, and reports no end of a program that has been replaced.
func TestStartRetriesWhenAPortIsTaken(t *testing.T) {
	t.Parallel()
	programs, err := controlplane.Assets()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() // its kube-controller-manager finds its port taken, once
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if err := os.Symlink(filepath.Join(programs, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	script := fmt.Sprintf(`#!/bin/sh
mkdir %q && echo "listen tcp 127.0.0.1:1: bind: address already in use" >&2 && exit 1
exec %q "$@"
`, filepath.Join(dir, "tried"), filepath.Join(programs, "kube-controller-manager"))
	if err := os.WriteFile(filepath.Join(dir, "kube-controller-manager"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	wanted, err := port.Free()
	if err != nil {
		t.Fatal(err)
	}
	cp := controlplanetest.Start(t, controlplane.Config{Assets: dir, Port: wanted, ControllerManager: true})
	if _, err := os.Stat(filepath.Join(dir, "tried")); err != nil {
		t.Error("kube-controller-manager found its port free at once:", err)
	}
	if want := fmt.Sprintf("https://127.0.0.1:%d", wanted); cp.URL() != want {
		t.Errorf("the API server is at %s, want %s", cp.URL(), want)
	}
	select {
	case err := <-cp.Died():
		t.Error("reported although it was replaced:", err)
	default:
	}
	if _, err := clientOf(t, cp).BatchV1().Jobs("default").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}

func TestTwoControlPlanesSideBySide(t *testing.T) {
	t.Parallel()
	one := controlplanetest.Start(t, controlplane.Config{})
	two := controlplanetest.Start(t, controlplane.Config{})
	if _, err := clientOf(t, one).BatchV1().Jobs("default").Create(t.Context(), newJob("here"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	there, err := clientOf(t, two).BatchV1().Jobs("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(there.Items) != 0 {
		t.Errorf("the second cluster shows jobs of the first: %v", there.Items)
	}
}

func TestFolderKeepsCluster(t *testing.T) {
	t.Parallel()
	config := controlplane.Config{Dir: t.TempDir(), UnsafeNoFsync: true}
	first, err := controlplane.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	_, createErr := clientOf(t, first).BatchV1().Jobs("default").Create(t.Context(), newJob("kept"), metav1.CreateOptions{})
	_, secondErr := controlplane.Start(t.Context(), config)
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	if createErr != nil {
		t.Fatal(createErr)
	}
	if secondErr == nil || !strings.Contains(secondErr.Error(), "another jobstream-controlplane is running") {
		t.Errorf("two control planes in one folder: %v", secondErr)
	}

	// The certificates are the old ones too: a client of the first run is good in the second.
	again := controlplanetest.Start(t, config)
	if _, err := clientOf(t, again).BatchV1().Jobs("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if string(first.RESTConfig().CAData) != string(again.RESTConfig().CAData) {
		t.Error("the second run has another authority")
	}
}

func TestAPIServerRestarts(t *testing.T) {
	t.Parallel()
	cp := controlplanetest.Start(t, controlplane.Config{})
	client := clientOf(t, cp)
	if _, err := client.BatchV1().Jobs("default").Create(t.Context(), newJob("survivor"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := cp.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.BatchV1().Jobs("default").Get(t.Context(), "survivor", metav1.GetOptions{}); err == nil {
		t.Fatal("a stopped API server answers")
	}
	if err := cp.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := client.BatchV1().Jobs("default").Get(t.Context(), "survivor", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}
