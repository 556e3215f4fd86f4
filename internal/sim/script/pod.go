package script

import (
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/sim"
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
			p.Phase, p.Scheduled, p.Ready, p.ReadySince, p.Waiting = events.Running, true, true, s.now, ""
		case "succeeds":
			p.Phase, p.Ready, p.Finished, p.End = events.Succeeded, false, s.now, ended(*p, 0)
		case "fails":
			p.Phase, p.Ready, p.Finished, p.End = events.Failed, false, s.now, ended(*p, 1)
		case "restarts":
			p.Restarts++
		case "cannot-start":
			p.Waiting = "ImagePullBackOff"
		case "is-unschedulable":
			p.Waiting = "Unschedulable"
		case "waits-for-a-finalizer": // a user deletes it, and another program's finalizer keeps it
			p.Deleting, p.Finished, p.Waiting = true, s.now, events.FinalizerPrefix+"example.com/keep"
		case "is-evicted":
			p.Deleting, p.Finished = true, s.now
			p.Conditions = []events.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
		case "is-deleted":
			p.Deleting, p.Finished = true, s.now
		case "loses-finalizer":
			p.Held = false
		case "is-orphaned":
			p.Orphan = true
		case "is-given-back":
			p.Orphan = false
		case "loses-serial":
			p.Serial = events.NoSerial
		case "is-relabelled":
			p.Labels = map[string]string{"app": "other"}
		default:
			if edited, ok := strings.CutPrefix(change, "gets-serial-"); ok {
				p.Serial = atoi(t, d, edited)
				return
			}
			code, ok := strings.CutPrefix(change, "fails-with-")
			if !ok {
				d.Fatalf(t, "unknown change %q", change)
			}
			p.Phase, p.Ready, p.Finished = events.Failed, false, s.now
			p.Exits = []events.Exit{{Container: "main", Code: int32(atoi(t, d, code))}}
			p.End = ended(*p, p.Exits[0].Code)
		}
	})
}

func ended(p events.Pod, code int32) *events.PodEnd {
	return &events.PodEnd{Node: "node", Start: p.Created, Container: &events.ContainerEnd{Name: "main", ExitCode: code}}
}

// stranger reads a Pod that the reconciler has not created. It has no serial unless one is given.
func foreignPod(t *testing.T, job types.UID, d *datadriven.TestData) (types.UID, events.Pod) {
	t.Helper()
	p := events.Pod{Name: d.CmdArgs[0].Key, Serial: events.NoSerial, Index: events.NoIndex, Phase: events.Running, Scheduled: true}
	owner := types.UID("")
	for _, a := range d.CmdArgs[1:] {
		switch a.Key {
		case "app":
			p.Labels = map[string]string{"app": a.Vals[0]}
		case "ended":
			p.Phase = events.Succeeded
		case "owned":
			owner = job
		case "held":
			p.Held = true
		case "serial":
			p.Serial = atoi(t, d, a.Vals[0])
		}
	}
	return owner, p
}

// values reads a ConfigMap; without a count there is none.
func values(t *testing.T, d *datadriven.TestData) (name string, v *sim.Values) {
	t.Helper()
	for _, a := range d.CmdArgs[1:] {
		if v == nil {
			v = &sim.Values{}
		}
		switch a.Key {
		case "count":
			v.Count = atoi(t, d, a.Vals[0])
		case "mutable":
			v.Mutable = true
		}
	}
	return d.CmdArgs[0].Key, v
}
