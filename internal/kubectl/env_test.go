package kubectl

import (
	"context"
	"sync"
	"testing"

	"github.com/jobstream/jobstream/internal/controlplane"
)

var (
	startOnce sync.Once
	shared    *controlplane.ControlPlane
	startErr  error
)

// apiServer returns the real API server that the tests of this package share, each in a namespace of its own. No jobstream
// runs beside it, and ScheduledJobs are known as soon as a test has asked for them.
func apiServer(t *testing.T) *controlplane.ControlPlane {
	t.Helper()
	if _, err := controlplane.Assets(); err != nil {
		t.Skip("needs a real API server: ", err)
	}
	startOnce.Do(func() {
		shared, startErr = controlplane.Start(context.Background(), controlplane.Config{UnsafeNoFsync: true,
			APIServerFlags: []string{"--enable-admission-plugins=OwnerReferencesPermissionEnforcement"}}) // some clusters have it
	})
	if startErr != nil {
		t.Fatal(startErr)
	}
	return shared
}
