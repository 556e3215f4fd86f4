package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// leaver is a user who installs jobstream, leaves, comes back, and leaves for good, by the commands of docs/uninstall.md.
type leaver struct {
	*harness.Space
	guide  *harness.Guide
	ledger *harness.Ledger
	gate   string // a file that the Pods of the Job "work" wait for
}

// Uninstalling loses nothing. The Deployments of deploy/base cannot run here for lack of an image: the programs run as processes
// instead, and are stopped when the Deployments are deleted.
func TestUninstallingLosesNothing(t *testing.T) {
	t.Parallel()
	s := own(t, harness.Config{})
	p := s.Space(t)
	l := &leaver{Space: p, ledger: harness.NewLedger(t), gate: filepath.Join(t.TempDir(), "gate"),
		guide: s.Guide(t, "docs/uninstall.md", "NAMESPACE="+p.Namespace, "JOB=endless")}
	l.run(t, "kubectl apply -f deploy/namespace.yaml && kubectl apply -k deploy/crd && kubectl apply -k deploy/base")
	for _, step := range []struct {
		name string
		run  func(*testing.T, *leaver)
	}{
		{"ProgramsGoAndComeBack", goAndComeBack},
		{"StuckIsGotOutOf", getOut},
		{"FollowTheGuideToTheEnd", toTheEnd},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, l) }) {
			return // the next step depends on this one
		}
	}
}

// run runs a command in the environment of the guide's commands.
func (l *leaver) run(t *testing.T, script string) string {
	t.Helper()
	out, err := l.guide.Run(t.Context(), script)
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return out
}

func (l *leaver) stopPrograms(t *testing.T) {
	t.Helper()
	for _, p := range append(l.Triggers, l.Reconcilers...) {
		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}

const completions = 6

// goAndComeBack: kubectl delete -k deploy/base, while a Job and a schedule run, leaves all of their objects in place. The Job's
// Pods end meanwhile, and are counted exactly when jobstream is back.
func goAndComeBack(t *testing.T, l *leaver) {
	script := "while [ ! -e " + l.gate + " ]; do sleep 0.1; done\n" + l.ledger.Script("0", "")
	job := l.Apply(harness.Shell("work", script, harness.Size(completions, 3, 0), harness.Indexed))
	tick := l.Schedule(harness.Every("tick", "*/3 * * * * *", "exit 0", harness.KeepAll, catchUpAll))
	l.Await("work", time.Minute, "to run", func(j *batchv1.Job) bool { return ptr.Deref(j.Status.Ready, 0) == 3 })
	l.AwaitSchedule("tick", time.Minute, "to have run once", func(j *v1alpha1.ScheduledJob) bool { return j.Status.Successful > 0 })
	l.guide.Follow(t, "1. See what is there")
	said := l.guide.Follow(t, "2. Make no new Jobs")
	if !hasAll(said, []string{"nothing was changed", "suspended ScheduledJob " + l.Namespace + "/tick"}) {
		t.Error("it does not print what it does")
	}
	atRest := l.AwaitSchedule("tick", time.Minute, "to rest", func(j *v1alpha1.ScheduledJob) bool {
		return j.Status.ObservedGeneration == j.Generation && len(j.Status.Active) == 0
	})
	runs := len(l.Runs(tick.UID))

	l.stopPrograms(t)
	l.run(t, "kubectl delete -k deploy/base")
	touch(t, l.gate)
	harness.Until(t, time.Minute, "the Pods to end uncounted", func(context.Context) error {
		if n := len(l.ledger.Read(t).Codes); n != 3 {
			return fmt.Errorf("%d have ended", n)
		}
		return nil
	})
	harness.Holds(t, 3*time.Second, "all to stay as it is", func(ctx context.Context) error {
		j, pods := l.Job("work"), l.Pods("work")
		if j.UID != job.UID || j.DeletionTimestamp != nil || j.Status.Succeeded != 0 || len(pods) != 3 || len(harness.Held(pods)) != 3 {
			return fmt.Errorf("Job %s deleted %v, %d Pods, held %v: %s", j.UID, j.DeletionTimestamp, len(pods), harness.Held(pods), harness.Brief(j.Status))
		}
		if k := l.Scheduled("tick"); k.UID != tick.UID || k.DeletionTimestamp != nil || len(l.Runs(tick.UID)) != runs {
			return fmt.Errorf("ScheduledJob %s deleted %v, %d Jobs, want %d", k.UID, k.DeletionTimestamp, len(l.Runs(tick.UID)), runs)
		}
		_, err := l.Client.CoreV1().Namespaces().Get(ctx, "jobstream", metav1.GetOptions{})
		return err
	})
	if out, err := l.guide.Run(t.Context(), "jobstream-reconciler drain"); err == nil || !hasAll(out, []string{"1 unfinished Job, 3 Pods with our finalizer, 0 ScheduledJobs", "goes on with exact counts"}) {
		t.Errorf("%v: %s", err, out)
	}

	l.run(t, "kubectl apply -k deploy/base")
	startAll(t, l.System)
	end := l.AwaitEnd("work", batchv1.JobComplete, time.Minute)
	if sum := l.ledger.Read(t); end.UID != job.UID || end.Status.Succeeded != completions || end.Status.Failed != 0 || sum.Succeeded != completions || sum.Indexes != completions {
		t.Errorf("%+v: %s", sum, harness.Brief(end.Status))
	}
	before := l.Scheduled("tick").Status.Successful
	l.guide.Follow(t, "Come back")
	resumed := l.AwaitSchedule("tick", time.Minute, "to go on", func(j *v1alpha1.ScheduledJob) bool { return j.Status.Successful > before })
	if resumed.Labels[v1alpha1.SuspendedByLabel] != "" || resumed.Status.Missed != atRest.Status.Missed || resumed.UID != tick.UID {
		t.Errorf("%+v", resumed)
	}
}

// getOut: what happens to a Job that is deleted in the foreground while jobstream is away, and how to remove it.
func getOut(t *testing.T, l *leaver) {
	l.Apply(harness.Shell("endless", "sleep 600", harness.Size(2, 2, 0)))
	l.Await("endless", time.Minute, "to run", func(j *batchv1.Job) bool { return ptr.Deref(j.Status.Ready, 0) == 2 })
	l.stopPrograms(t)
	err := l.Client.BatchV1().Jobs(l.Namespace).Delete(t.Context(), "endless", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)})
	if err != nil {
		t.Fatal(err)
	}
	harness.Until(t, time.Minute, "its Pods to be deleted", func(context.Context) error {
		for _, p := range l.Pods("endless") {
			if p.DeletionTimestamp == nil {
				return errors.New(p.Name + " is not")
			}
		}
		return nil
	})
	harness.Holds(t, 2*time.Second, "them to be stuck", func(context.Context) error {
		if held := harness.Held(l.Pods("endless")); len(held) != 2 {
			return fmt.Errorf("held are %v: the guide is wrong", held)
		}
		return nil
	})
	l.guide.Follow(t, "Stuck")
	l.awaitGone(t, "endless")
	startAll(t, l.System)
}

// awaitGone waits until neither the Job nor its Pods exist.
func (l *leaver) awaitGone(t *testing.T, job string) {
	t.Helper()
	harness.Until(t, time.Minute, "Job "+job+" to go", func(ctx context.Context) error {
		if _, err := l.Client.BatchV1().Jobs(l.Namespace).Get(ctx, job, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it exists: %w", err)
		}
		if pods := l.Pods(job); len(pods) > 0 {
			return fmt.Errorf("%d Pods exist, held %v", len(pods), harness.Held(pods))
		}
		return nil
	})
}

// toTheEnd follows the guide step by step. In the end nothing is stuck, and what is gone was named.
func toTheEnd(t *testing.T, l *leaver) {
	l.Apply(harness.Shell("endless", "sleep 600", harness.Size(2, 2, 0)))
	l.Await("endless", time.Minute, "to run", func(j *batchv1.Job) bool { return ptr.Deref(j.Status.Ready, 0) == 2 })
	l.guide.Follow(t, "1. See what is there")
	l.guide.Follow(t, "2. Make no new Jobs")
	if out, err := l.guide.Run(t.Context(), "jobstream-reconciler drain --wait=2s"); err == nil || !strings.Contains(out, "endless") {
		t.Errorf("there is no end to wait for, and the command returns %v: %s", err, out)
	}
	if said := l.guide.Follow(t, "3. Delete by name, and wait for the rest"); !strings.Contains(said, "nothing of jobstream is left unfinished") {
		t.Error("something is left")
	}
	l.guide.Follow(t, "4. The programs")
	l.stopPrograms(t)
	l.guide.Follow(t, "5. The namespace, and NATS")
	l.guide.Follow(t, "6. The kind, last of all")

	if j := l.Job("work"); !harness.Is(j, batchv1.JobComplete) || j.Status.Succeeded != completions || len(l.Pods("work")) != completions {
		t.Errorf("a Job that was not named: %s, %d Pods", harness.Brief(j.Status), len(l.Pods("work")))
	}
	list, err := l.Client.BatchV1().Jobs(l.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range list.Items {
		if j.DeletionTimestamp != nil || len(j.Finalizers) > 0 {
			t.Errorf("Job %s deleted %v, finalizers %v", j.Name, j.DeletionTimestamp, j.Finalizers)
		}
	}
	if len(list.Items) < 2 {
		t.Errorf("%d Jobs are left: those of the ScheduledJob were to stay", len(list.Items))
	}
	for _, p := range l.Pods("") {
		if p.DeletionTimestamp != nil || len(p.Finalizers) > 0 {
			t.Errorf("Pod %s deleted %v, finalizers %v", p.Name, p.DeletionTimestamp, p.Finalizers)
		}
	}
	left := l.run(t, "kubectl get namespaces,crd,clusterroles,clusterrolebindings,flowschemas,prioritylevelconfigurations -o name | grep jobstream || true")
	if left != "" {
		t.Errorf("left are %s", left)
	}
}
