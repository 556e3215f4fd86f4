package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/app"
)

// hello returns what the user has to know once Jobs run.
func hello(s *settings, f found) string {
	var b strings.Builder
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "  %-13s  %s\n", what, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "Jobs that say \"managedBy: %s\" are jobstream's now.\n", s.ManagedBy)
	line("cluster", "%s, Kubernetes %s at %s", contextOf(f), f.version.GitVersion, f.address)
	line("ScheduledJobs", "%s", schedules(f.schedules))
	line("NATS", "%s", listens(s))
	line("metrics", "%s", serves(s.MetricsAddress, "/metrics"))
	line("health", "%s", serves(s.HealthAddress, "/readyz"))
	if s.ManagedBy == v1alpha1.DefaultManagedBy { // the value that the plugin writes
		fmt.Fprintf(&b, "\nTry in another terminal:\n\n  %s run hello%s --image=busybox --logs -- echo hello\n\n", plugin(), target(s))
	}
	b.WriteString("Ctrl-C stops jobstream. Jobs stay as they are, and go on when it is started again.\n")
	return b.String()
}

func contextOf(f found) string {
	if f.context == "" {
		return "the one that this Pod is in"
	}
	return "context " + f.context
}

// schedules tells whether ScheduledJobs work, and if not, the remedy.
func schedules(served bool) string {
	if served {
		return "on"
	}
	return `off: this cluster does not know the kind; start jobstream with --install-crds, or run "kubectl apply -k deploy/crd". Jobs run without it`
}

func listens(s *settings) string {
	if s.port == 0 {
		return "listens nowhere; data in " + s.dir
	}
	return s.url() + "; data and token in " + s.dir
}

func serves(address, path string) string {
	if address == "" || address == app.Off {
		return "not served"
	}
	return "http://" + address + path
}

// plugin returns the command for the plugin of kubectl: its path if it lies beside this program and kubectl does not find it.
func plugin() string {
	const name = "kubectl-jobstream"
	_, installed := exec.LookPath(name)
	us, err := os.Executable()
	if installed == nil || err != nil {
		return "kubectl jobstream"
	}
	beside := filepath.Join(filepath.Dir(us), name)
	if _, err := os.Stat(beside); err != nil {
		return "kubectl jobstream"
	}
	if dir, err := os.Getwd(); err == nil {
		if near, err := filepath.Rel(dir, beside); err == nil && !strings.HasPrefix(near, "..") {
			return "." + string(filepath.Separator) + near
		}
	}
	return beside
}

// target returns the flags that point kubectl to this cluster.
func target(s *settings) (flags string) {
	if s.given != "" {
		flags += " --kubeconfig=" + s.given
	}
	if s.Context != "" {
		flags += " --context=" + s.Context
	}
	return flags
}
