package e2e

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/kubectl/convert"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// A hundred CronJobs of every minute become ScheduledJobs, and CronJobs again, while both controllers run, and each time at the
// end of a minute: no nominal time is lost, and none is doubled. Their Jobs are suspended, since only their creation matters.
func TestCutoverOfLiveCronJobs(t *testing.T) {
	t.Parallel()
	const count = 100
	s := shared(t)
	p := s.Space(t)
	made := time.Now()
	for i := range count {
		job := harness.Shell("", "true").Spec
		job.Suspend, job.ManagedBy = ptr.To(true), nil
		_, err := s.Client.BatchV1().CronJobs(p.Namespace).Create(t.Context(), &batchv1.CronJob{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("minutely-%02d", i)},
			Spec:       batchv1.CronJobSpec{Schedule: "* * * * *", TimeZone: ptr.To("Etc/UTC"), JobTemplate: batchv1.JobTemplateSpec{Spec: job}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	awaitMinute(t, p, "CronJob", made, count)

	backFrom := map[string]time.Time{} // by CronJob
	cutover := convert.Cutover{Client: s.Client, Dynamic: jsonClient(t, s), Options: convert.Options{Now: time.Now()}, Say: func(format string, args ...any) {
		line := fmt.Sprintf(format, args...)
		t.Log(line)
		if m := cronJobTookOver.FindStringSubmatch(line); m != nil {
			from, err := time.Parse(time.RFC3339, m[2])
			if err != nil {
				t.Error(err)
			}
			backFrom[m[1]] = from
		}
	}}
	cronJobs, err := s.Client.BatchV1().CronJobs(p.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	beforeTheMinuteEnds(t)
	if _, err := cutover.TakeOver(t.Context(), cronJobs.Items); err != nil {
		t.Fatal(err)
	}
	awaitMinute(t, p, v1alpha1.ScheduledJobKind, time.Now(), count)

	list, err := cutover.Dynamic.Resource(v1alpha1.GroupVersion.WithResource(v1alpha1.ScheduledJobResource)).Namespace(p.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var scheduled v1alpha1.ScheduledJobList
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.UnstructuredContent(), &scheduled); err != nil {
		t.Fatal(err)
	}
	beforeTheMinuteEnds(t)
	cutover.Options.Now = time.Now()
	if _, err := cutover.HandBack(t.Context(), scheduled.Items); err != nil {
		t.Fatal(err)
	}
	awaitMinute(t, p, "CronJob", time.Now(), count)
	if len(backFrom) != count {
		t.Errorf("%d of %d CronJobs have taken over", len(backFrom), count)
	}
	checkMinutes(t, p, count, backFrom)
}

var cronJobTookOver = regexp.MustCompile(`^cronjob [^/]+/(\S+) has taken over, from (\S+) on$`)

// jsonClient returns a client for kinds without protobuf.
func jsonClient(t *testing.T, s *harness.System) dynamic.Interface {
	t.Helper()
	c := rest.CopyConfig(s.REST)
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	c.QPS = -1
	client, err := dynamic.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// beforeTheMinuteEnds waits for the worst moment: objects are suspended just before, and just after, they are due.
func beforeTheMinuteEnds(t *testing.T) {
	t.Helper()
	harness.Pass(t, time.Until(time.Now().Truncate(time.Minute).Add(59*time.Second+500*time.Millisecond)))
}

// minutes returns the Jobs of every schedule by their nominal times, each as the kind that created it.
func minutes(t *testing.T, p *harness.Space) map[string]map[time.Time][]string {
	t.Helper()
	jobs, err := p.Client.BatchV1().Jobs(p.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[time.Time][]string{}
	for _, j := range jobs.Items {
		ref := metav1.GetControllerOf(&j)
		at, err := time.Parse(time.RFC3339, j.Annotations[batchv1.CronJobScheduledTimestampAnnotation])
		if ref == nil || err != nil {
			t.Errorf("%s: no owner, or no nominal time", j.Name)
			continue
		}
		if all[ref.Name] == nil {
			all[ref.Name] = map[time.Time][]string{}
		}
		all[ref.Name][at.UTC()] = append(all[ref.Name][at.UTC()], ref.Kind)
	}
	return all
}

// awaitMinute waits until every schedule has a Job, created by the kind, for a minute after the given time.
func awaitMinute(t *testing.T, p *harness.Space, kind string, after time.Time, count int) {
	t.Helper()
	harness.Until(t, 4*time.Minute, "a Job of each "+kind, func(context.Context) error {
		have := 0
		for _, of := range minutes(t, p) {
			for at, kinds := range of {
				if at.After(after) && len(kinds) > 0 && kinds[0] == kind {
					have++
					break
				}
			}
		}
		if have < count {
			return fmt.Errorf("%d of %d", have, count)
		}
		return nil
	})
}

// checkMinutes: from its first to its last Job, every schedule has one for each minute. Of several minutes that have passed when the
// CronJob controller looks, it starts the last only: on a busy machine a minute may be missing between two of its own, or after a CronJob
// has taken over, and nowhere else.
func checkMinutes(t *testing.T, p *harness.Space, count int, backFrom map[string]time.Time) {
	t.Helper()
	all, made, skipped, kinds := minutes(t, p), 0, 0, map[string]int{}
	if len(all) != count {
		t.Errorf("%d of %d schedules have Jobs", len(all), count)
	}
	for name, of := range all {
		times := slices.SortedFunc(maps.Keys(of), time.Time.Compare)
		for i, at := range times {
			if made++; len(of[at]) != 1 {
				t.Errorf("%s: %s has %d Jobs, by %v", name, at.Format(time.TimeOnly), len(of[at]), of[at])
			}
			kinds[of[at][0]]++
			if i == 0 || at.Sub(times[i-1]) == time.Minute {
				continue
			}
			before, after := of[times[i-1]][0], of[at][0]
			if after == "CronJob" && (before == "CronJob" || !times[i-1].Before(backFrom[name])) {
				skipped++
				continue
			}
			t.Errorf("%s: lost between %s, by %s, and %s, by %s; the CronJob has taken over from %s on", name, times[i-1].Format(time.TimeOnly), before,
				at.Format(time.TimeOnly), after, backFrom[name].Format(time.TimeOnly))
		}
	}
	t.Logf("%d schedules, %d nominal times: %v; the CronJob controller left %d gaps", len(all), made, kinds, skipped)
}
