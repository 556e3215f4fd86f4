package kubectl

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/functions/scheduledjob"
	"github.com/jobstream/jobstream/internal/kubectl/backfill"
)

// hourly returns a ScheduledJob that has decided everything up to now.
func (w *world) hourly(change func(*v1alpha1.ScheduledJob)) *v1alpha1.ScheduledJob {
	w.Helper()
	sj := w.newScheduled("hourly", func(s *v1alpha1.ScheduledJob) {
		s.Spec.Schedule = "0 * * * *"
		change(s)
	})
	status := fmt.Sprintf(`{"status":{"decidedUntil":%q}}`, time.Now().UTC().Format(time.RFC3339))
	if err := w.schedules().rest.Patch(types.MergePatchType).Namespace(w.ns).Resource(v1alpha1.ScheduledJobResource).Name(sj.Name).SubResource("status").
		Body([]byte(status)).Do(w.Context()).Error(); err != nil {
		w.Fatal(err)
	}
	return sj
}

// listener receives each line that the plugin prints.
type listener func(line string)

func (l listener) Write(b []byte) (int, error) {
	l(string(b))
	return len(b), nil
}

// TestBackfillMeetsJobs: Jobs that another client creates at the same time, or has left behind, count towards the limit.
func TestBackfillMeetsJobs(t *testing.T) {
	at := time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name, flags string
		policy      v1alpha1.ConcurrencyPolicy
		meets       func(w *world, sj *v1alpha1.ScheduledJob) *batchv1.Job
		code        int
		made        int
		says        string
	}{
		{"a Job that another backfill makes in that moment", "", v1alpha1.ForbidConcurrent,
			func(_ *world, sj *v1alpha1.ScheduledJob) *batchv1.Job {
				return ofRun(scheduledjob.BuildBackfill(sj, at, "x.dev/y", time.UTC))
			},
			0, 1, "waiting for %s, since concurrencyPolicy lets one Job run at once"},
		{"the same where several may run at once", "", v1alpha1.AllowConcurrent,
			func(_ *world, sj *v1alpha1.ScheduledJob) *batchv1.Job {
				return ofRun(scheduledjob.BuildBackfill(sj, at, "x.dev/y", time.UTC))
			},
			0, 1, "waiting for %s, since --parallelism=1"},
		{"a Job of the name that is not the ScheduledJob's", "", v1alpha1.AllowConcurrent,
			func(_ *world, sj *v1alpha1.ScheduledJob) *batchv1.Job {
				j := ofRun(scheduledjob.BuildBackfill(sj, at, "x.dev/y", time.UTC))
				j.OwnerReferences = nil
				return j
			}, ExitFailed, 0, "the name of the Job %s is taken by a Job that the ScheduledJob hourly does not control"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			sj := w.hourly(func(s *v1alpha1.ScheduledJob) { s.Spec.ConcurrencyPolicy = tt.policy })
			other := tt.meets(w, sj)
			beside := false
			w.fault = func(n int, _ *http.Request) error {
				if n == 0 {
					if _, err := w.BatchV1().Jobs(w.ns).Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
						t.Error(err)
					}
				} else if ended(w.job(other.Name)) == nil {
					beside = true
				}
				return nil
			}
			told, made := "", 0
			tool := func(p *tool) {
				p.ErrOut = listener(func(line string) {
					if told += line; strings.HasPrefix(line, "waiting for ") {
						w.end(other.Name, batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)
					}
				})
				p.Out = listener(func(line string) {
					if strings.HasSuffix(line, " created\n") {
						made++
						w.end(strings.TrimPrefix(strings.Fields(line)[1], "job.batch/"), batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)
					}
				})
			}
			got := call(t, "", []string{"backfill", "hourly", "--from=" + at.Format(time.RFC3339), "--to=" + at.Add(time.Hour).Format(time.RFC3339)}, w.here, tool)
			if want := fmt.Sprintf(tt.says, other.Name); got.code != tt.code || made != tt.made || beside || !strings.Contains(told, want) {
				t.Errorf("exit code %d, %d Jobs made, beside the other: %v: %s, want %s", got.code, made, beside, told, want)
			}
		})
	}
}

// TestBackfillOfAScheduledJobThatIsDeleted: the backfill creates no more Jobs, because the garbage collector would delete each of
// them.
func TestBackfillOfAScheduledJobThatIsDeleted(t *testing.T) {
	w := newWorld(t)
	sj := w.hourly(func(*v1alpha1.ScheduledJob) {})
	told, made := "", 0
	tool := func(p *tool) {
		p.ErrOut = listener(func(line string) { told += line })
		p.Out = listener(func(line string) {
			if !strings.HasSuffix(line, " created\n") {
				return
			}
			if made++; made == 1 {
				if err := w.schedules().delete(t.Context(), w.ns, sj.Name, sj.UID); err != nil {
					t.Error(err)
				}
			}
			name := strings.TrimPrefix(strings.Fields(line)[1], "job.batch/")
			if err := w.BatchV1().Jobs(w.ns).Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}); err != nil {
				t.Error(err)
			}
		})
	}
	got := call(t, "", []string{"backfill", "hourly", "--keep-going", "--from=2026-11-01", "--to=2026-11-01T05:00"}, w.here, tool)
	if got.code != ExitFailed || made != 1 || !strings.Contains(told, "the ScheduledJob hourly was deleted") {
		t.Errorf("exit code %d, %d Jobs made: %s", got.code, made, told)
	}
}

// TestBackfillGoesOn: the command that resumes a backfill has the same times and the same cluster, however much time has passed.
func TestBackfillGoesOn(t *testing.T) {
	at := time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)
	p := newTool(genericiooptions.NewTestIOStreamsDiscard())
	*p.config.Context, *p.config.KubeConfig, *p.config.Namespace = "prod", "/home/me/it's", "shop"
	b := &backfillCommand{tool: p, schedule: "hourly", env: []string{"A=it's"}, parallelism: 2, keepGoing: true, dryRun: "none"}
	w := backfill.New([]backfill.Run{{Nominal: at}, {Nominal: at.Add(time.Hour)}}, false)
	b.last = at.Add(time.Hour)
	want := `kubectl jobstream backfill hourly --from=2026-11-01T10:00:00Z --to=2026-11-01T11:00:00Z --namespace='shop' --context='prod' --kubeconfig='/home/me/it'\''s' --env='A=it'\''s' --parallelism=2 --keep-going`
	from, _ := w.Rest()
	if got := b.goOn(from); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
}
