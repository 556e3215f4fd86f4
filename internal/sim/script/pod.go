package script

import (
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobstream/jobstream/events"
)

// pod changes the Pod with that serial as its node or a user does.
func (s *Stage) pod(t *testing.T, d *datadriven.TestData, serial, change string) {
	t.Helper()
	name := ""
	for _, p := range s.api.List("", s.uid).Pods {
		if strconv.Itoa(p.Serial) == serial {
			name = p.Name
		}
	}
	if name == "" {
		d.Fatalf(t, "no Pod with serial %s is held or runs", serial)
	}
	s.api.UpdatePod(name, func(p *events.Pod) {
		switch change {
		case "runs":
			p.Phase, p.Scheduled, p.Ready, p.ReadySince = events.Running, true, true, s.now
		case "succeeds":
			p.Phase, p.Ready, p.Finished = events.Succeeded, false, s.now
		case "fails":
			p.Phase, p.Ready, p.Finished = events.Failed, false, s.now
		case "restarts":
			p.Restarts++
		case "cannot-start":
			p.Waiting = "ImagePullBackOff"
		case "is-evicted":
			p.Deleting, p.Finished = true, s.now
			p.Conditions = []events.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
		case "is-deleted":
			p.Deleting, p.Finished = true, s.now
		case "loses-finalizer":
			p.Held = false
		case "is-orphaned":
			p.Orphan = true
		case "is-relabelled":
			p.Labels = map[string]string{"app": "other"}
		default:
			code, ok := strings.CutPrefix(change, "fails-with-")
			if !ok {
				d.Fatalf(t, "unknown change %q", change)
			}
			p.Phase, p.Ready, p.Finished = events.Failed, false, s.now
			p.Exits = []events.Exit{{Container: "main", Code: int32(atoi(t, d, code))}}
		}
	})
}
