package progress

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
)

// State returns what a Job does, in the words of a Board, such as Running or Failed, and why it fails, has failed or makes no
// progress; why is "" if nothing is wrong. Both are safe to print (see Clean).
func State(j *batchv1.Job) (state, why string) {
	var k job
	k.saw(j, time.Time{})
	switch {
	case k.reason != "":
		why = k.reason + ": " + k.message
	case k.obstacle != "" && !k.over():
		why = k.obstacle
	}
	return string(k.phase()), why
}
