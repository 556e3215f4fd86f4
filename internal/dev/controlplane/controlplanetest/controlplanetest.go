// Package controlplanetest starts a control plane for a test and takes it away afterwards.
package controlplanetest

import (
	"testing"

	"github.com/jobstream/jobstream/internal/dev/controlplane"
)

// Start starts a control plane that ends with the test, whether it passes, fails or panics. etcd does not fsync:
// a test does not survive a crash of the machine anyway. If the programs are missing, the test fails with the command to run:
// a skipped test would go unnoticed.
func Start(t testing.TB, config controlplane.Config) *controlplane.ControlPlane {
	t.Helper()
	config.UnsafeNoFsync, config.GCPercent = true, controlplane.RareGC
	cp, err := controlplane.Start(t.Context(), config)
	if err != nil {
		t.Fatalf("start a control plane: %v", err)
	}
	t.Cleanup(func() {
		select {
		case err := <-cp.Died():
			t.Errorf("the control plane broke during the test: %v", err)
		default:
		}
		if err := cp.Stop(); err != nil {
			t.Errorf("stop the control plane: %v", err)
		}
	})
	return cp
}
