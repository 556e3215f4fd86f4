package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// far makes every request of the controllers take longer, as if the API server were far away: jobstream's programs reach it through a
// proxy, and so does the built-in Job controller, which then is a process of its own.
func far(ctx context.Context, system *harness.System, l limit, s side) error {
	if l.distance == 0 {
		return nil
	}
	system.Proxy.Begin(func(_ http.ResponseWriter, r *http.Request) bool {
		late := time.NewTimer(l.distance)
		defer late.Stop()
		select {
		case <-late.C:
		case <-r.Context().Done():
		}
		return false
	})
	if s.name == builtIn {
		p, err := system.BuiltInJobs()
		if err != nil {
			return err
		}
		// A path of its own tells it from the other kube-controller-manager.
		if err := os.Symlink(p.Path, apart(system)); err != nil {
			return err
		}
		p.Path, p.Args = apart(system), append(append(p.Args, "--controllers=cronjob-controller"), l.flags...) // too: the flag adds to a list
		return system.Attend(p)
	}
	for _, p := range append(append([]*harness.Process{}, system.Triggers...), system.Reconcilers...) {
		if err := harness.Ready(ctx, p); err != nil { // their connections were closed
			return err
		}
	}
	return nil
}

// apart is the path of the built-in Job controller that is a process of its own.
func apart(system *harness.System) string {
	return filepath.Join(system.ControlPlane.Dir(), "job-controller")
}
