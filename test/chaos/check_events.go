package chaos

import (
	"encoding/json"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

const (
	startType  = "dev.jobstream.job.start.v1"
	finishType = "dev.jobstream.job.finish.v1"
)

// finish is the data of a JobFinish, and part of that of a JobStart.
type finish struct {
	Job               struct{ UID types.UID }
	Result            string
	Succeeded, Failed int32
	CompletedIndexes  string
}

// checkAnnouncements: every existing Job was announced when it started and when it finished, once each by source and id, and its
// JobFinish agrees with its status. A Job that was suspended may have started twice. A deleted one may be gone before the
// reconciler could announce it.
func (w world) checkAnnouncements(wrong *findings) {
	starts, finishes := map[types.UID]int{}, map[types.UID]int{}
	for _, e := range w.events {
		if e.Type != startType && e.Type != finishType {
			continue
		}
		var said finish
		if err := json.Unmarshal(e.Data, &said); err != nil || said.Job.UID == "" {
			wrong.add("%s %s %s names no Job: %v", e.Type, e.Source, e.ID, err)
			continue
		}
		if e.Type == startType {
			starts[said.Job.UID]++
			continue
		}
		if finishes[said.Job.UID]++; finishes[said.Job.UID] > 1 {
			wrong.add("Job %s %s has finished twice", w.jobs[said.Job.UID].Name, said.Job.UID)
		}
		if j, there := w.jobs[said.Job.UID]; there {
			said.compare(j, wrong)
		}
	}
	for uid, j := range w.jobs {
		most := 1
		if w.wants[j.Name].Sort == Paused && metav1.GetControllerOf(&j) == nil {
			most = 2
		}
		if n := starts[uid]; n > most || n == 0 && !w.deaf {
			wrong.add("Job %s has %d JobStarts", j.Name, n)
		}
		if finishes[uid] == 0 && !w.deaf {
			wrong.add("Job %s has no JobFinish", j.Name)
		}
	}
}

// compare checks a JobFinish against the status of the Job, which is final.
func (f finish) compare(j batchv1.Job, wrong *findings) {
	result := "Succeeded"
	if harness.Is(&j, batchv1.JobFailed) {
		result = "Failed"
	}
	st := j.Status
	if f.Result != result || f.Succeeded != st.Succeeded || f.Failed != st.Failed || f.CompletedIndexes != st.CompletedIndexes {
		wrong.add("Job %s: its JobFinish has %+v, its status %s", j.Name, f, harness.Brief(st))
	}
}
