package watch

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobstream/jobstream/deploy"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

// TestPermissions watches as a user with exactly the permissions of the deployed trigger.
func TestPermissions(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("pi")
	_, pickyKey := w.CreateJob("picky", clustertest.Picky("pi"))
	w.ForeignPod("orphan", map[string]string{"app": "pi"})
	client, schedules := w.As(clustertest.DeployedRules(t, deploy.TriggerRBAC))
	x := startWatcher(t, &memorySink{}, client, nil, func(c *Config) { c.ScheduledJobs, c.Claim.Unmanaged = schedules, true })
	hourly, hourlyKey := w.CreateSchedule("hourly")
	w.MakeRun(hourly, clustertest.Noon)
	clustertest.Eventually(t, func() string {
		if len(of[events.ScheduledJobObserved](x.sink, hourlyKey)) == 0 || len(of[events.RunObserved](x.sink, hourlyKey)) == 0 {
			return "an observation of the ScheduledJob and its Job; log:\n" + x.log.String()
		}
		return ""
	})
	_, lateKey := w.CreateJob("late")
	clustertest.Eventually(t, func() string {
		if len(of[events.JobObserved](x.sink, lateKey)) == 0 {
			return "an observation of the Job"
		}
		return ""
	})
	p := w.createPod(j, key, 1)
	x.sees(t, key, w.EndPod(p.Name, corev1.PodRunning))
	x.sees(t, pickyKey, w.LivePod("orphan"))
	x.sees(t, key, w.ForeignPod("others", j.Spec.Template.Labels, clustertest.OwnedBy(j)))
	x.sees(t, key, w.EditPod(p.Name, func(p *corev1.Pod) { p.Labels = nil })) // makes the Watcher read one Pod
}
