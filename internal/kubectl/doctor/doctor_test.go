package doctor

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/finding"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// ago returns a time before noon.
func ago(d time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(-d)} }

func job(name string, change ...func(*batchv1.Job)) batchv1.Job {
	j := batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", CreationTimestamp: *ago(time.Hour)}, Spec: batchv1.JobSpec{ManagedBy: ptr.To(v1alpha1.DefaultManagedBy)}}
	for _, f := range change {
		f(&j)
	}
	return j
}

func started(j *batchv1.Job) { j.Status.StartTime = ago(50 * time.Minute) }

func says(t, reason, message string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobConditionType(t), Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: *ago(10 * time.Minute)})
	}
}

func schedule(name string, change ...func(*v1alpha1.ScheduledJob)) v1alpha1.ScheduledJob {
	s := v1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", CreationTimestamp: *ago(time.Hour)}, Spec: v1alpha1.ScheduledJobSpec{Schedule: "@daily"},
		Status: v1alpha1.ScheduledJobStatus{ObservedGeneration: 1, NextScheduleTime: ago(-time.Hour)}}
	for _, f := range change {
		f(&s)
	}
	return s
}

func overdue(s *v1alpha1.ScheduledJob) { s.Status.NextScheduleTime = ago(time.Minute) }

func observation(jobs []batchv1.Job, schedules ...v1alpha1.ScheduledJob) Observation {
	return Observation{Jobs: jobs, ScheduledJobs: schedules, Where: "the namespace shop", Now: noon}
}

// TestRunning: only work left undone is evidence that jobstream does not run.
func TestRunning(t *testing.T) {
	for _, tt := range []struct {
		name        string
		observation Observation
		level       finding.Level
		says        string
	}{
		{"nothing to do", observation(nil), finding.OK, "not visible, because the namespace shop has nothing for it to do; test it with: kubectl jobstream run hello"},
		{"a Job that runs", observation([]batchv1.Job{job("pi", started)}), finding.OK, "nothing waits for it; its latest trace in the namespace shop is on job/pi, 50m0s ago"},
		{"a Job that has ended", observation([]batchv1.Job{job("pi", started, says("Complete", "", ""))}), finding.OK, "job/pi, 10m0s ago"},
		{"a Job that nothing happens to", observation([]batchv1.Job{job("pi"), job("e", func(j *batchv1.Job) { j.CreationTimestamp = *ago(2 * time.Hour) })}), finding.Fail, "has not processed job/e, which has waited for 2h0m0s, and one other"},
		{"a Job of this moment", observation([]batchv1.Job{job("pi", func(j *batchv1.Job) { j.CreationTimestamp = *ago(20 * time.Second) })}), finding.OK, "nothing waits for it in the namespace shop"},
		{"a Job that is being deleted", observation([]batchv1.Job{job("pi", func(j *batchv1.Job) { j.DeletionTimestamp = ago(0) })}), finding.OK, "nothing waits"},
		{"a suspended Job", observation([]batchv1.Job{job("pi", says("Suspended", "", ""))}), finding.OK, "nothing waits"},
		{"a Job that was stopped, and runs on", observation([]batchv1.Job{job("pi", started, says("FailureTarget", "", ""), func(j *batchv1.Job) { j.Status.Active = 2 })}), finding.Fail, "has not processed job/pi, which has waited for 10m0s"},
		{"a Job that was stopped, and whose Pods take their time", observation([]batchv1.Job{job("pi", started, says("FailureTarget", "", ""))}), finding.OK, "nothing waits"},
		{"a Job of another controller", observation([]batchv1.Job{job("pi", func(j *batchv1.Job) { j.Spec.ManagedBy = nil })}), finding.OK, "not visible"},
		{"a new ScheduledJob for a time that has passed", observation(nil, schedule("nightly", func(s *v1alpha1.ScheduledJob) {
			s.Status.NextScheduleTime, s.CreationTimestamp = ago(48*time.Hour), *ago(time.Second)
		})), finding.OK, "nothing waits for it in the namespace shop"},
		{"a ScheduledJob whose time waits for an active Job", observation(nil, schedule("nightly", overdue, func(s *v1alpha1.ScheduledJob) {
			s.Spec.ConcurrencyPolicy, s.Status.Active = v1alpha1.QueueConcurrent, make([]corev1.ObjectReference, 1)
		})), finding.OK, "nothing waits for it in the namespace shop"},
		{"a ScheduledJob whose time has waited for a Job that has just ended", observation(nil, schedule("nightly", overdue, func(s *v1alpha1.ScheduledJob) {
			s.Spec.ConcurrencyPolicy, s.Status.LastRun = v1alpha1.QueueConcurrent, &v1alpha1.EndedRun{CompletionTime: *ago(time.Second)}
		})), finding.OK, "nothing waits for it in the namespace shop"},
		{"a ScheduledJob that is not due", observation(nil, schedule("nightly")), finding.OK, "nothing waits for it in the namespace shop"},
		{"one that was never looked at", observation(nil, schedule("nightly", func(s *v1alpha1.ScheduledJob) { s.Status = v1alpha1.ScheduledJobStatus{} })), finding.Fail, "has not processed scheduledjob/nightly, which has waited for 1h0m0s"},
		{"one that is overdue", observation(nil, schedule("nightly", overdue)), finding.Fail, "has not processed scheduledjob/nightly, which has waited for 1m0s"},
		{"overdue, and suspended", observation(nil, schedule("nightly", overdue, func(s *v1alpha1.ScheduledJob) { s.Spec.Suspend = ptr.To(true) })), finding.OK, "nothing waits"},
		{"overdue, and Blocked", observation(nil, schedule("nightly", overdue, blocked)), finding.OK, "nothing waits"},
		{"overdue, and later by its share of the jitter", observation(nil, schedule("nightly", overdue, func(s *v1alpha1.ScheduledJob) { s.Spec.JitterSeconds = ptr.To[int32](360_000) })), finding.OK, "nothing waits"},
		{"overdue, and waiting for the Pods of the one before", observation(nil, schedule("nightly", overdue, func(s *v1alpha1.ScheduledJob) {
			s.Spec.ConcurrencyPolicy, s.Status.Active = v1alpha1.ReplaceConcurrent, make([]corev1.ObjectReference, 1)
		})), finding.OK, "nothing waits"},
		{"one that has made a Job", observation(nil, schedule("nightly", func(s *v1alpha1.ScheduledJob) { s.Status.LastScheduleTime = ago(12 * time.Hour) })), finding.OK, "its latest trace in the namespace shop is on scheduledjob/nightly, 12h0m0s ago"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if f := tt.observation.Running(); f.Level != tt.level || !strings.Contains(f.Found, tt.says) || (f.Advice == "") != (tt.level == finding.OK) {
				t.Errorf("want %v and %q, got %+v", tt.level, tt.says, f)
			}
		})
	}
}

func blocked(s *v1alpha1.ScheduledJob) {
	s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.BlockedCondition, Status: metav1.ConditionTrue, Reason: "NameTaken", Message: "another owner's Job has the name"}}
}

// TestProblems: each problem has its remedy, their number is limited, and healthy objects are not mentioned.
func TestProblems(t *testing.T) {
	suspended := func(by string) func(*batchv1.Job) {
		return func(j *batchv1.Job) {
			j.Spec.Suspend, j.Labels = ptr.To(true), map[string]string{v1alpha1.SuspendedByLabel: by}
		}
	}
	refused := says(v1alpha1.RefusedCondition, "Forbidden", "exceeded quota")
	for _, tt := range []struct {
		name        string
		observation Observation
		want        string // the beginning of "level check: found -> advice"
	}{
		{"none", observation([]batchv1.Job{job("pi", started)}, schedule("nightly")), "OK jobs and scheduledjobs: no problem found: 1 Jobs of jobstream and 1 ScheduledJobs in the namespace shop were checked ->"},
		{"refused", observation([]batchv1.Job{job("pi", refused)}), "FAIL job/pi: jobstream.dev/Refused: Forbidden: exceeded quota -> correct what rejects its Pods"},
		{"refused until it ended", observation([]batchv1.Job{job("pi", refused, says("Failed", "", ""))}), "OK jobs and"},
		{"unsupported", observation([]batchv1.Job{job("pi", says(v1alpha1.UnsupportedCondition, "X", "y"))}), "FAIL job/pi: jobstream.dev/Unsupported: X: y -> delete it, and create it without that: kubectl delete job pi -n shop; docs/jobs.md"},
		{"an annotation", observation([]batchv1.Job{job("pi", says(v1alpha1.IgnoredCondition, "BadAnnotation", "y"))}), "WARN job/pi: jobstream.dev/AnnotationIgnored: BadAnnotation: y -> correct the annotation: kubectl edit job pi -n shop"},
		{"not adopting", observation([]batchv1.Job{job("pi", says(v1alpha1.NotAdoptingCondition, "X", "y"))}), "WARN job/pi: jobstream.dev/NotAdopting: X: y -> leave out manualSelector"},
		{"run was killed", observation([]batchv1.Job{job("pi", suspended("run"))}), "WARN job/pi: is suspended for ever: the command that created it was interrupted -> delete it with: kubectl delete job pi -n shop, and run it again"},
		{"run is at work", observation([]batchv1.Job{job("pi", suspended("run"), func(j *batchv1.Job) { j.CreationTimestamp = *ago(2 * time.Second) })}), "OK jobs and"},
		{"drained", observation([]batchv1.Job{job("pi", suspended("drain"))}), "WARN job/pi: was suspended when jobstream was being removed from this cluster -> if jobstream is installed again: kubectl jobstream resume job/pi -n shop --force"},
		{"another controller", observation([]batchv1.Job{job("pi", suspended("kueue"))}), `WARN job/pi: was suspended by "kueue" (label jobstream.dev/suspended-by) -> ask them, or: kubectl jobstream resume job/pi`},
		{"converted back", observation(nil, schedule("nightly", func(s *v1alpha1.ScheduledJob) {
			s.Spec.Suspend, s.Labels = ptr.To(true), map[string]string{v1alpha1.SuspendedByLabel: v1alpha1.SuspendedByConvert}
		})), "WARN scheduledjob/nightly: was suspended because a CronJob has taken over -> if the CronJob is to stay: kubectl delete scheduledjob nightly -n shop"},
		{"stalled", observation(nil, schedule("nightly", func(s *v1alpha1.ScheduledJob) {
			s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.StalledCondition, Status: metav1.ConditionTrue, Reason: "InvalidSchedule", Message: "no such hour"}}
		})), "FAIL scheduledjob/nightly: Stalled: InvalidSchedule: no such hour -> correct its spec: kubectl edit scheduledjob nightly -n shop"},
		{"blocked", observation(nil, schedule("nightly", blocked)), "FAIL scheduledjob/nightly: Blocked: NameTaken: another owner's Job has the name -> correct what rejects its Job"},
		{"a long message", observation([]batchv1.Job{job("pi", says(v1alpha1.RefusedCondition, "X", strings.Repeat("é", 1000)))}), "FAIL job/pi: jobstream.dev/Refused: X: " + strings.Repeat("é", 300-len("jobstream.dev/Refused: X: ")-1) + "… -> "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all := tt.observation.Problems()
			if len(all) != 1 {
				t.Fatalf("want one finding, got %+v", all)
			}
			if got := fmt.Sprintf("%v %s: %s -> %s", all[0].Level, all[0].Check, all[0].Found, all[0].Advice); !strings.HasPrefix(got, tt.want) {
				t.Errorf("want %q, got %q", tt.want, got)
			}
		})
	}
	var many []batchv1.Job
	for i := range 30 {
		many = append(many, job(fmt.Sprint("j-", i), refused))
	}
	s := observation(many)
	s.More, s.AllNamespaces, s.Where = true, true, "all namespaces"
	all := s.Problems()
	if len(all) != 21 || all[0].Check != "job/j-0 in shop" || all[20].Found != "10 more problems are not shown: 30 Jobs of jobstream and 0 ScheduledJobs in all namespaces were checked; there are more" {
		t.Errorf("%d findings, the last is %+v", len(all), all[len(all)-1])
	}
}

// TestAccess: each command with a missing permission is named with it, each permission is asked once, and kinds that the cluster
// does not have are left out.
func TestAccess(t *testing.T) {
	rule := func(group, verbs, resources string) authorizationv1.ResourceRule {
		return authorizationv1.ResourceRule{APIGroups: []string{group}, Verbs: strings.Split(verbs, ","), Resources: strings.Split(resources, ",")}
	}
	for _, tt := range []struct {
		name      string
		scheduled bool
		rules     []authorizationv1.ResourceRule
		may       string
		not       []string
	}{
		{"an administrator", true, []authorizationv1.ResourceRule{rule("*", "*", "*")}, "jobstream alone; run; run --per-completion-env; run --run-at; wait, watch, run --wait; logs, run --logs; next; list; history; why; trigger; backfill; suspend, resume; stop; rerun; decisions, replay", nil},
		{"a reader", true, []authorizationv1.ResourceRule{rule("", "get,list,watch", "pods,*/log"), rule("batch", "get,list,watch", "jobs"), rule(v1alpha1.Group, "get,list,watch", "*")}, "jobstream alone; wait, watch, run --wait; logs, run --logs; next; list; history; why; decisions, replay",
			[]string{"run: in the namespace shop you may not create jobs", "run --per-completion-env: in the namespace shop you may not create jobs, patch jobs, delete jobs, create configmaps", "run --run-at: in the namespace shop you may not create scheduledjobs",
				"trigger: in the namespace shop you may not create jobs", "backfill: in the namespace shop you may not create jobs",
				"suspend, resume: in the namespace shop you may not patch jobs, patch scheduledjobs", "stop: in the namespace shop you may not patch jobs/status", "rerun: in the namespace shop you may not create jobs, patch jobs, delete jobs, get configmaps, create configmaps"}},
		{"where there are no ScheduledJobs", false, []authorizationv1.ResourceRule{rule("batch", "*", "*"), rule("", "*", "pods,pods/log,configmaps")}, "jobstream alone; run; run --per-completion-env; wait, watch, run --wait; logs, run --logs; why; suspend, resume; stop; rerun; decisions, replay", nil},
		{"of one Job only", false, []authorizationv1.ResourceRule{{APIGroups: []string{"*"}, Verbs: []string{"*"}, Resources: []string{"*"}, ResourceNames: []string{"pi"}}}, "",
			[]string{"jobstream alone: ", "run: ", "run --per", "wait, ", "logs, ", "why: ", "suspend, ", "stop: ", "rerun: ", "decisions, "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := map[authorizationv1.ResourceAttributes]int{}
			all := Access("shop", tt.scheduled, func(a authorizationv1.ResourceAttributes) (bool, error) {
				asked[a]++
				return Granted(tt.rules, a), nil
			})
			for a, n := range asked {
				if n > 1 || a.Namespace != "shop" || a.Group == v1alpha1.Group && !tt.scheduled {
					t.Errorf("%+v was asked %d times", a, n)
				}
			}
			if tt.may != "" {
				if all[0].Level != finding.OK || all[0].Found != "in the namespace shop you may "+tt.may {
					t.Errorf("%+v", all[0])
				}
				all = all[1:]
			}
			if len(all) != len(tt.not) {
				t.Fatalf("%+v", all)
			}
			for i, f := range all {
				if f.Level != finding.Warn || !strings.HasPrefix(f.Found, tt.not[i]) || f.Advice == "" {
					t.Errorf("want %q, got %+v", tt.not[i], f)
				}
			}
		})
	}
	if all := Access("shop", true, func(authorizationv1.ResourceAttributes) (bool, error) { return false, errors.New("no answer") }); len(all) != 1 || all[0].Found != "cannot be checked: no answer" {
		t.Errorf("%+v", all)
	}
}
