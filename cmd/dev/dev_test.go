package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobstream/jobstream/cmd/dev/manifests"
	"github.com/jobstream/jobstream/internal/app"
)

func TestPi(t *testing.T) {
	const digits = "3.14159265358979323846264338327950288419716939937510582097494"
	for _, n := range []int{2, 30, 60} {
		if got := pi(n); got != digits[:n+1] {
			t.Errorf("%d digits of pi are %s", n, got)
		}
	}
	// A rounding error would show in the last digits first.
	if got := pi(1000); !strings.HasSuffix(got, "6420198") {
		t.Errorf("a thousand digits of pi end in %s", got[len(got)-7:])
	}
	var c corev1.Container
	if err := standIn(&c); err != nil || len(c.Command) != 3 || !filepath.IsAbs(c.Command[0]) {
		t.Errorf("the stand-in is %v, %v", c.Command, err)
	}
}

func TestExhibitsAreThere(t *testing.T) {
	for _, e := range exhibits {
		if j, err := manifests.Job(e.name); err != nil || j.Name != e.name {
			t.Errorf("%s: %v", e.name, err)
		}
	}
	if s, err := manifests.ScheduledJob(schedule); err != nil || s.Name != schedule {
		t.Errorf("%s: %v", schedule, err)
	}
}

// Only one system may use a folder, and a temporary folder is deleted with it.
func TestFolderOfASystem(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	kept := t.TempDir()
	for _, tt := range []struct {
		name, dir string
		stays     bool
	}{{"temporary", "", false}, {"given", kept, true}} {
		t.Run(tt.name, func(t *testing.T) {
			s := &system{plan: plan{Dir: tt.dir}}
			if err := s.makeFolder(t.Context()); err != nil {
				t.Fatal(err)
			}
			second := &system{plan: plan{Dir: s.dir}}
			if err := second.makeFolder(t.Context()); err == nil || !strings.Contains(err.Error(), "another jobstream-dev is running in "+s.dir) {
				t.Errorf("a second user: %v", err)
			}
			if err := s.stop(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(s.dir); (err == nil) != tt.stays {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}

func TestPortsGiveWay(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).Port
	if got := freePort(t.Context(), taken); got == taken || got == 0 {
		t.Errorf("instead of a port that is taken: %d", got)
	}
	address := "127.0.0.1:" + strconv.Itoa(taken)
	if got := freeAddress(t.Context(), address); got == address || !strings.HasPrefix(got, "127.0.0.1:") {
		t.Errorf("instead of an address that is taken: %s", got)
	}
	if got := freeAddress(t.Context(), app.Off); got != app.Off {
		t.Errorf("instead of none: %s", got)
	}
}

// Without the control plane's programs and the source to build them from, the error names both remedies.
func TestProgramsThatAreMissing(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("KUBEBUILDER_ASSETS", "")
	t.Setenv("JOBSTREAM_CONTROLPLANE_DIR", t.TempDir())
	err := ensurePrograms(t.Context(), func(string, ...any) {})
	var fatal *app.Fatal
	if !errors.As(err, &fatal) || !strings.Contains(fatal.Remedy, "make controlplane") || !strings.Contains(fatal.Remedy, "--kubeconfig") {
		t.Errorf("%v", err)
	}
}

func TestCheckoutIsFoundFromWithin(t *testing.T) {
	root := checkout()
	if _, err := os.Stat(filepath.Join(root, "cmd", "dev", "main.go")); root == "" || err != nil {
		t.Errorf("%q: %v", root, err)
	}
	t.Chdir(t.TempDir())
	if got := checkout(); got != "" {
		t.Errorf("outside it is %s", got)
	}
}

func TestGuide(t *testing.T) {
	text := guide{
		apiServer: "https://127.0.0.1:6443", kubeconfig: "/dir/kubeconfig", nats: "nats://127.0.0.1:4222",
		trigger: addresses{"127.0.0.1:1", "127.0.0.1:2"}, reconciler: addresses{"127.0.0.1:3", "127.0.0.1:4"},
		node: true, manifest: "/my dir/squares.yaml", path: "/it's/bin", aftermath: "Gone.",
	}.String()
	for _, want := range []string{
		"\n  export KUBECONFIG=/dir/kubeconfig PATH='/it'\\''s/bin':\"$PATH\"\n", "\n  kubectl jobstream run greet ", "\n  kubectl apply -f '/my dir/squares.yaml'\n",
		"\n  kubectl jobstream logs squares\n", "nats://127.0.0.1:4222", "http://127.0.0.1:3/metrics", "http://127.0.0.1:2/readyz", "Gone.\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the guide does not say %q:\n%s", want, text)
		}
	}
}

// The folder may exist from an earlier start, with links to a program that is gone.
func TestPlugIn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bin")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := plugIn(dir); err != nil {
			t.Fatal(err)
		}
		if to, err := os.Readlink(filepath.Join(dir, "kubectl-jobstream")); err != nil || to != self {
			t.Errorf("the plugin is %q, %v", to, err)
		}
		if err := os.Remove(filepath.Join(dir, "kubectl-jobstream")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/nowhere", filepath.Join(dir, "kubectl-jobstream")); err != nil {
			t.Fatal(err)
		}
	}
	for name, is := range map[string]bool{"/x/kubectl-jobstream": true, "/x/dev": false, "kubectl": false} {
		if isPlugin(name) != is {
			t.Errorf("%s is the plugin: %v", name, !is)
		}
	}
}

func TestInterruptions(t *testing.T) {
	broken := errors.New("broken")
	late, cancel := context.WithTimeoutCause(t.Context(), 0, errors.New("too late"))
	defer cancel()
	<-late.Done()
	asked, stop := context.WithCancel(t.Context())
	stop()
	for _, tt := range []struct {
		ctx  context.Context
		err  error
		want string
	}{
		{t.Context(), nil, ""}, {t.Context(), broken, "broken"}, {late, broken, "too late"}, {asked, broken, "interrupted"}, {asked, nil, ""},
	} {
		got := ""
		if err := interrupted(tt.ctx, tt.err); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
