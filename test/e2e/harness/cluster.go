package harness

import (
	"errors"
	"os/exec"
	"path/filepath"

	"github.com/jobstream/jobstream/internal/dev/controlplane"
)

// BuiltInJobs returns the built-in Job controller as a process of its own, not started yet: for a System that has it switched
// off in kube-controller-manager. If the System is Proxied, so is this process.
func (s *System) BuiltInJobs() (*Process, error) {
	dir, err := controlplane.Assets()
	if err != nil {
		return nil, err
	}
	return &Process{Name: "job-controller", Path: filepath.Join(dir, "kube-controller-manager"), LogFile: s.path("job-controller.log"), Args: []string{
		"--kubeconfig=" + s.kubeconfig, "--leader-elect=false", "--secure-port=0", "--controllers=job-controller",
	}}, nil
}

// Describe returns what "kubectl describe job" shows a user.
func (p *Space) Describe(job string) string { p.Helper(); return p.DescribeKind("job", job) }

// DescribeKind returns what "kubectl describe" shows a user.
func (p *Space) DescribeKind(kind, name string) string {
	p.Helper()
	dir, err := controlplane.Assets()
	if err != nil {
		p.Fatal(err)
	}
	out, err := exec.CommandContext(p.Context(), filepath.Join(dir, "kubectl"), "--kubeconfig="+p.ControlPlane.Kubeconfig(),
		"--namespace="+p.Namespace, "describe", kind, name).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			p.Fatalf("kubectl describe %s: %v: %s", kind, err, exit.Stderr)
		}
		p.Fatal(err)
	}
	return string(out)
}
