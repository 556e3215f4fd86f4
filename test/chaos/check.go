package chaos

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// world is all that the checker knows: the API server, what etcd has stored of Pods, the Pods' file, and its own subscription.
type world struct {
	jobs      map[types.UID]batchv1.Job
	pods      []corev1.Pod
	schedules []v1alpha1.ScheduledJob
	lines     []line
	lives     map[types.UID]life
	events    []told
	wants     map[string]want
	onces     map[string]bool
	// deaf reports whether a wipe has deleted events that the recorder had not received.
	deaf bool
	// trouble is what went wrong during the run: an event that cannot be decoded, a fault that cannot be healed.
	problems findings
}

// findings are what is wrong.
type findings []string

func (f *findings) add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

// check returns what is wrong once everything has come to rest.
func (w world) check() (wrong findings) {
	wrong = append(wrong, w.problems...)
	w.checkLedger(&wrong)
	w.checkHeld(&wrong)
	w.checkJobs(&wrong)
	w.checkTicks(&wrong)
	w.checkAnnouncements(&wrong)
	slices.Sort(wrong)
	return wrong
}

// unfinished returns what has not come to rest.
func (w world) unfinished() (open findings) {
	byName := map[string]batchv1.Job{}
	for _, j := range w.jobs {
		byName[j.Name] = j
		if !harness.Is(&j, batchv1.JobComplete) && !harness.Is(&j, batchv1.JobFailed) {
			open.add("Job %s has not ended: %s", j.Name, harness.Brief(j.Status))
		}
	}
	for name, t := range w.wants {
		if j, there := byName[name]; there == (t.Sort == Deleted) && (!there || j.UID == t.uid) {
			open.add("Job %s exists: %t", name, there)
		}
	}
	there := map[string]bool{}
	for _, s := range w.schedules {
		there[s.Name] = true
		done := v1alpha1.SuspendedCondition
		if s.Spec.RunAt != nil {
			done = v1alpha1.FinishedCondition
		}
		if !meta.IsStatusConditionTrue(s.Status.Conditions, done) || len(s.Status.Active) > 0 {
			open.add("ScheduledJob %s: not %s, or active: %+v", s.Name, done, s.Status)
		}
	}
	for name := range w.onces {
		if !there[name] {
			open.add("ScheduledJob %s does not exist", name)
		}
	}
	for _, p := range w.pods {
		owner := metav1.GetControllerOf(&p)
		if slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer) {
			open.add("Pod %s is held: %s", p.Name, p.Status.Phase)
		} else if _, known := w.jobs[ownerUID(owner)]; owner != nil && !known {
			open.add("Pod %s exists, though its Job is gone", p.Name)
		}
	}
	slices.Sort(open)
	return open
}

func ownerUID(owner *metav1.OwnerReference) types.UID {
	if owner == nil {
		return ""
	}
	return owner.UID
}

// checkHeld: no Pod may be left that waits to be counted.
func (w world) checkHeld(wrong *findings) {
	for _, name := range harness.Held(w.pods) {
		wrong.add("Pod %s keeps the tracking finalizer", name)
	}
	there := map[types.UID]bool{}
	for _, p := range w.pods {
		there[p.UID] = true
	}
	for uid, l := range w.lives {
		if !l.gone && !there[uid] {
			wrong.add("Pod %s is missing from the list, and etcd's watch has not shown its deletion", uid)
		}
	}
}

// checkLedger compares what Pods have done with what was stored of them.
func (w world) checkLedger(wrong *findings) {
	ran := map[types.UID]line{}
	for _, l := range w.lines {
		if _, twice := ran[l.uid]; twice {
			wrong.add("Pod %s of Job %s has run twice", l.uid, l.job)
		}
		ran[l.uid] = l
		seen, known := w.lives[l.uid]
		switch {
		case !known:
			wrong.add("Pod %s of Job %s has run, and was never stored", l.uid, l.job)
		case l.code == 0 && seen.phase == corev1.PodFailed && !seen.disrupted && !seen.withdrawn && !seen.gone:
			wrong.add("Pod %s of Job %s has succeeded, and its phase is %s", l.uid, l.job, seen.phase)
		case l.code != 0 && seen.phase == corev1.PodSucceeded:
			wrong.add("Pod %s of Job %s has failed, and its phase is %s", l.uid, l.job, seen.phase)
		}
	}
	for uid, seen := range w.lives {
		if l, has := ran[uid]; seen.counts == corev1.PodSucceeded && (!has || l.code != 0) {
			wrong.add("Pod %s counts as succeeded, though it has not done its work", uid)
		}
	}
}
