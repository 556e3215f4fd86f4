package chaos

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// announcesJobs turns the check of JobStart and JobFinish on. It is off until the reconciler announces Jobs; a run prints
// that it is off.
const announcesJobs = false

const (
	startType  = "dev.jobstream.job.start.v1"
	finishType = "dev.jobstream.job.finish.v1"
)

// checkAnnouncements: every Job that is there was announced when it started and when it finished, once each by source and
// id. A Job that was suspended may have started twice. One that was deleted may have gone before anybody could say so.
func (w world) checkAnnouncements(wrong *findings) {
	starts, finishes := map[types.UID]int{}, map[types.UID]int{}
	for _, e := range w.events {
		if e.Type != startType && e.Type != finishType {
			continue
		}
		var data struct{ Job struct{ UID types.UID } }
		if err := json.Unmarshal(e.Data, &data); err != nil || data.Job.UID == "" {
			wrong.add("%s %s %s names no Job: %v", e.Type, e.Source, e.ID, err)
			continue
		}
		if e.Type == startType {
			starts[data.Job.UID]++
		} else {
			finishes[data.Job.UID]++
		}
	}
	for uid, n := range finishes {
		if n > 1 {
			wrong.add("Job %s %s has finished %d times", w.jobs[uid].Name, uid, n)
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
