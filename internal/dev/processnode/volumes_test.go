package processnode

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func volume(name string, s v1.VolumeSource) v1.Volume { return v1.Volume{Name: name, VolumeSource: s} }

// hostLacks fails the test where something that only a container should see is on the host.
func hostLacks(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is on the host", path)
		}
	}
}

func TestVolumes(t *testing.T) {
	w := newWorld(t, Config{})
	api := w.client.CoreV1()
	cm := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"a.txt": "from a map\n", "b.txt": "b\n"}}
	if _, err := api.ConfigMaps(w.namespace).Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys"}, StringData: map[string]string{"key": "hush\n"}}
	if _, err := api.Secrets(w.namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p := shell("vols", `
		set -e
		cat /jobstream-test/config/a.txt /etc/jobstream-test/key /usr/share/jobstream-test/deep/labels /opt/only.txt
		echo written > /jobstream-test/data/inner/file
		cat /jobstream-test/data/inner/file
		if echo x 2>/dev/null > /jobstream-test/config/new; then echo "a config map is writable"; fi
		test -d /usr/share/misc -o -d /usr/share/doc && ls /usr/bin/env > /dev/null && echo "the host is there"
		pwd
		echo "last words" > /dev/termination-log
	`)
	p.Labels = map[string]string{"tier": "test"}
	p.Spec.Volumes = []v1.Volume{
		volume("config", v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "settings"}}}),
		volume("keys", v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "keys"}}),
		volume("data", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}),
		volume("inner", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}),
		volume("me", v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{{DownwardAPI: &v1.DownwardAPIProjection{
			Items: []v1.DownwardAPIVolumeFile{{Path: "deep/labels", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.labels"}}},
		}}}}}),
	}
	c := &p.Spec.Containers[0]
	c.WorkingDir = "/jobstream-test/data/work"
	c.VolumeMounts = []v1.VolumeMount{
		{Name: "inner", MountPath: "/jobstream-test/data/inner"},
		{Name: "config", MountPath: "/jobstream-test/config"},
		{Name: "config", MountPath: "/opt/only.txt", SubPath: "a.txt"},
		{Name: "keys", MountPath: "/etc/jobstream-test", ReadOnly: true},
		{Name: "data", MountPath: "/jobstream-test/data"},
		{Name: "me", MountPath: "/usr/share/jobstream-test"},
	}
	w.create(p)
	got := w.await("vols", "at its end", terminal)
	log := w.logs("vols", &v1.PodLogOptions{})
	want := "from a map\nhush\ntier=\"test\"from a map\nwritten\nthe host is there\n/jobstream-test/data/work\n"
	if log != want {
		t.Errorf("log is\n%s\nand not\n%s\nstate %+v", log, want, got.Status.ContainerStatuses[0].State)
	}
	if s := mainState(t, got); s.Message != "last words\n" {
		t.Errorf("state is %+v", s)
	}
	hostLacks(t, "/jobstream-test", "/opt/only.txt", "/etc/jobstream-test", "/usr/share/jobstream-test", "/dev/termination-log")
	mounts, _ := os.ReadFile("/proc/self/mounts")
	if strings.Contains(string(mounts), w.config.DataDir) {
		t.Errorf("a mount is left on the host:\n%s", mounts)
	}
}

func TestSandboxFailures(t *testing.T) {
	w := newWorld(t, Config{})
	empty := volume("data", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})
	for name, test := range map[string]struct {
		change func(*v1.Pod)
		want   string
	}{
		"missing": {func(p *v1.Pod) { p.Spec.Containers[0].Command = []string{"no-such-program-here"} }, "install no-such-program-here"},
		"root":    {func(p *v1.Pod) { p.Spec.Containers[0].VolumeMounts[0].MountPath = "/" }, "cannot replace the root"},
		"kind": {func(p *v1.Pod) {
			p.Spec.Volumes[0] = volume("data", v1.VolumeSource{NFS: &v1.NFSVolumeSource{Server: "x", Path: "/x"}})
		}, "kind that the development node does not have"},
	} {
		p := shell(name, "true")
		p.Spec.Volumes = []v1.Volume{empty}
		p.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/jobstream-test"}}
		test.change(p)
		w.create(p)
		s := mainState(t, w.awaitPhase(name, v1.PodFailed))
		if s.ExitCode != 128 || s.Reason != "StartError" || !strings.Contains(s.Message, test.want) {
			t.Errorf("%s: state is %+v", name, s)
		}
	}
}

func TestMissingConfigurationIsAwaited(t *testing.T) {
	w := newWorld(t, Config{})
	p := shell("late", `echo "$VALUE"; exit 0`)
	p.Spec.Containers[0].EnvFrom = []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "late"}}}}
	p.Spec.Containers[0].Env = []v1.EnvVar{{Name: "NO", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{
		LocalObjectReference: v1.LocalObjectReference{Name: "never"}, Key: "x", Optional: ptr.To(true),
	}}}}
	w.create(p)
	w.await("late", "waiting for its configuration", func(p *v1.Pod) bool {
		return len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].State.Waiting != nil &&
			p.Status.ContainerStatuses[0].State.Waiting.Reason == "CreateContainerConfigError"
	})
	cm := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Data: map[string]string{"VALUE": "better late"}}
	if _, err := w.client.CoreV1().ConfigMaps(w.namespace).Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.awaitPhase("late", v1.PodSucceeded)
	if log := w.logs("late", &v1.PodLogOptions{}); log != "better late\n" {
		t.Errorf("log is %q", log)
	}
}

func TestPutStaysInItsVolume(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"../x", "/x", "a/../../x"} {
		if err := put(dir, path, nil, nil); err == nil {
			t.Errorf("put(%q) succeeded", path)
		}
	}
	if err := os.Symlink("/", filepath.Join(dir, "way-out")); err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{"..", "/etc", "way-out/etc"} {
		if got, err := subPath(dir, sub); err == nil {
			t.Errorf("subPath(%q) is %q", sub, got)
		}
	}
}
