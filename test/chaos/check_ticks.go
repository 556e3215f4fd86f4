package chaos

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// tickType is the type of verdicts. The checker reads them as any subscriber would: with types of its own.
const tickType = "dev.jobstream.schedule.tick.v1"

type tick struct {
	ScheduledJob struct{ UID types.UID }
	Verdict      string
	Reason       string
	Nominal      time.Time
	Until        time.Time
	Count        int
	Job          *struct{ UID types.UID }
}

// checkTicks: every nominal time has one verdict; each that started has one Job, and every Job of a ScheduledJob has a verdict,
// also one that a user has started.
func (w world) checkTicks(wrong *findings) {
	verdicts := map[types.UID]map[int64][]tick{} // by ScheduledJob and nominal time
	manual := map[types.UID]int{}                // verdicts on Jobs that users have started
	for _, e := range w.events {
		if e.Type != tickType {
			continue
		}
		var t tick
		if err := json.Unmarshal(e.Data, &t); err != nil {
			wrong.add("verdict %s %s cannot be read: %v", e.Source, e.ID, err)
			continue
		}
		if t.Reason == "Manual" && t.Job != nil {
			manual[t.Job.UID]++
			continue
		}
		if verdicts[t.ScheduledJob.UID] == nil {
			verdicts[t.ScheduledJob.UID] = map[int64][]tick{}
		}
		w.spread(t, verdicts[t.ScheduledJob.UID], wrong)
	}
	runs, started := map[types.UID]map[int64][]types.UID{}, map[types.UID]int{} // those of nominal times, and the number of those that users have started
	for uid, j := range w.jobs {
		owner := metav1.GetControllerOf(&j)
		if owner == nil {
			continue
		}
		if j.Annotations[v1alpha1.InstantiateAnnotation] == v1alpha1.InstantiateManual {
			if n := manual[uid]; n > 1 || n == 0 && !w.deaf {
				wrong.add("Job %s, which a user has started, has %d verdicts", j.Name, n)
			}
			started[owner.UID]++
			continue
		}
		at, err := time.Parse(time.RFC3339, j.Annotations[v1alpha1.NominalTimeAnnotation])
		if err != nil {
			wrong.add("Job %s has no nominal time: %v", j.Name, err)
			continue
		}
		if runs[owner.UID] == nil {
			runs[owner.UID] = map[int64][]types.UID{}
		}
		runs[owner.UID][at.Unix()] = append(runs[owner.UID][at.Unix()], uid)
	}
	for _, s := range w.schedules {
		w.checkSchedule(s, verdicts[s.UID], runs[s.UID], started[s.UID], wrong)
	}
}

// spread records the verdict for every nominal time that it covers.
func (w world) spread(t tick, at map[int64][]tick, wrong *findings) {
	if t.Until.IsZero() {
		at[t.Nominal.Unix()] = append(at[t.Nominal.Unix()], t)
		return
	}
	for _, s := range w.schedules {
		period := periods[s.Name]
		if s.UID != t.ScheduledJob.UID || period == 0 {
			continue
		}
		n := 0
		for now := t.Nominal; !now.After(t.Until); now = now.Add(period) {
			at[now.Unix()] = append(at[now.Unix()], t)
			n++
		}
		if n != t.Count {
			wrong.add("ScheduledJob %s: a verdict from %v to %v covers %d times, but has count %d", s.Name, t.Nominal, t.Until, n, t.Count)
		}
	}
}

func (w world) checkSchedule(s v1alpha1.ScheduledJob, verdicts map[int64][]tick, runs map[int64][]types.UID, byUsers int, wrong *findings) {
	made := 0
	for _, at := range nominals(s) {
		unix, when := at.Unix(), at.UTC().Format(time.RFC3339)
		switch all := verdicts[unix]; {
		case len(all) == 0 && w.deaf:
		case len(all) == 0:
			wrong.add("ScheduledJob %s: no verdict on %s", s.Name, when)
		case len(all) > 1:
			wrong.add("ScheduledJob %s: %d verdicts on %s: %+v", s.Name, len(all), when, all)
		case all[0].Verdict == "Started" && (len(runs[unix]) != 1 || all[0].Job == nil || all[0].Job.UID != runs[unix][0]):
			wrong.add("ScheduledJob %s: %s has started %+v, but its Jobs are %v", s.Name, when, all[0].Job, runs[unix])
		case all[0].Verdict != "Started" && len(runs[unix]) > 0:
			wrong.add("ScheduledJob %s: %s is %s (%s), but its Jobs are %v", s.Name, when, all[0].Verdict, all[0].Reason, runs[unix])
		}
		if len(runs[unix]) > 1 {
			wrong.add("ScheduledJob %s: %d Jobs for %s", s.Name, len(runs[unix]), when)
		}
		made += len(runs[unix])
	}
	total := 0
	for _, r := range runs {
		total += len(r)
	}
	if total != made {
		wrong.add("ScheduledJob %s: %d Jobs, %d of them for a nominal time that is decided", s.Name, total, made)
	}
	total += byUsers
	if st := s.Status; int(st.Successful+st.Failed-st.Missed) != total {
		wrong.add("ScheduledJob %s: %d Jobs, but the status has successful=%d failed=%d missed=%d", s.Name, total, st.Successful, st.Failed, st.Missed)
	}
	if s.Name == "each-second" && s.Status.Missed > 0 {
		wrong.add("ScheduledJob %s catches up on all times, but has missed %d", s.Name, s.Status.Missed)
	}
}

// nominals are the times that must have been decided.
func nominals(s v1alpha1.ScheduledJob) (all []time.Time) {
	if s.Spec.RunAt != nil {
		return []time.Time{s.Spec.RunAt.Time}
	}
	period := periods[s.Name]
	if s.Status.DecidedUntil == nil || period == 0 {
		return nil
	}
	for at := s.CreationTimestamp.Truncate(period).Add(period); !at.After(s.Status.DecidedUntil.Time); at = at.Add(period) {
		all = append(all, at)
	}
	return all
}
