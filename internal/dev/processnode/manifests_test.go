package processnode

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// manifest reads the Pod of a Job from the Kubernetes documentation, which lies beside the checkout.
func manifest(t *testing.T, file string, programs ...string) *v1.Pod {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "data", "manifests", file))
	if err != nil {
		t.Skipf("skipped, the Kubernetes documentation's manifests are not beside the checkout: %v", err)
	}
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("skipped, this machine cannot run it: %v", err)
		}
	}
	var job batchv1.Job
	if err := yaml.Unmarshal(b, &job); err != nil {
		t.Fatal(err)
	}
	p := &v1.Pod{Spec: job.Spec.Template.Spec}
	p.Name = job.Name
	return p
}

func TestManifestPi(t *testing.T) {
	p := manifest(t, "job-pi.yaml", "perl")
	w := newWorld(t, Config{})
	w.create(p)
	w.awaitPhase("pi", v1.PodSucceeded)
	if log := w.logs("pi", &v1.PodLogOptions{}); !strings.HasPrefix(log, "3.14159265358979323846") || len(log) != 1002 {
		t.Errorf("pi is %s (%d characters)", log, len(log))
	}
}

func TestManifestIndexed(t *testing.T) {
	p := manifest(t, "indexed-job.yaml", "bash", "rev")
	w := newWorld(t, Config{})
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		list[0].Env = []v1.EnvVar{{Name: "JOB_COMPLETION_INDEX", Value: "2"}} // the Job controller's part
	}
	w.create(p)
	w.awaitPhase("indexed-job", v1.PodSucceeded)
	if log := w.logs("indexed-job", &v1.PodLogOptions{}); log != "zab\n" {
		t.Errorf("log is %q", log)
	}
	hostLacks(t, "/input")
}

func TestManifestSidecar(t *testing.T) {
	p := manifest(t, "job-sidecar.yaml", "tail")
	w := newWorld(t, Config{})
	w.create(p)
	got := w.awaitPhase("myjob", v1.PodSucceeded)
	if s := got.Status.InitContainerStatuses[0].State.Terminated; s == nil || s.ExitCode != 143 {
		t.Errorf("the sidecar is %+v", got.Status.InitContainerStatuses[0].State)
	}
	hostLacks(t, "/opt/logs.txt")
}
