package schedules

import (
	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// What must hold of the Jobs that have ended, in a status at rest.

// counts: every Job that has started is counted once, by how it ended.
func (t *Truth) counts(st v1alpha1.ScheduledJobStatus, started map[string]bool, missed int64) {
	var unsure int64
	ends := map[events.RunResult]int64{}
	for _, e := range t.ends {
		switch {
		case t.vain[e.name] && !started[e.name]:
		case t.users.doubt[e.name] && t.users.told()[e.name] == 0: // no verdict, and so no count
		case t.unsure[e.name] && e.result == events.RunComplete:
			unsure++
		default:
			ends[e.result]++
		}
	}
	if least := ends[events.RunComplete]; st.Successful < least || st.Successful > least+unsure {
		t.fail("successful=%d, but %d Jobs completed, and the results of %d are unknown", st.Successful, least, unsure)
	}
	if all := ends[events.RunComplete] + unsure + ends[events.RunFailed] + ends[""] + missed; st.Successful+st.Failed != all {
		t.fail("successful=%d failed=%d, but %v Jobs ended, the results of %d are unknown, and %d times were missed", st.Successful, st.Failed, ends, unsure, missed)
	}
}

// lastRun: what the status shows of Jobs that have ended is how they ended. A Job whose end was not observed is Missing.
func (t *Truth) lastRun(st v1alpha1.ScheduledJobStatus) {
	results := map[string]events.RunResult{}
	for _, e := range t.ends {
		results[e.name] = e.result
	}
	right := func(name, result string) bool {
		is, ended := results[name]
		return ended && (result == string(is) || result == "Missing" && (is == "" || t.unsure[name] || t.wasGone(name)))
	}
	if l := st.LastRun; l != nil && !right(l.JobName, l.Result) {
		t.fail("the last run is %s of %s, which has ended as %q", l.Result, l.JobName, results[l.JobName])
	} else if l == nil && st.Successful > 0 {
		t.fail("%d Jobs were successful, and there is no last run", st.Successful)
	}
	for _, v := range st.Recent {
		if v.Verdict == string(events.Started) && !right(v.JobName, v.Result) {
			t.fail("the verdict on %s shows %q, it has ended as %q", v.JobName, v.Result, results[v.JobName])
		}
	}
	if n := st.ActiveCount; n == nil || int(*n) != len(st.Active) {
		t.fail("activeCount is not the number of %v", st.Active)
	}
}
