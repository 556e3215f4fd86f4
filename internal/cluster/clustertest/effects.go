package clustertest

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/pod"
	"github.com/jobstream/jobstream/functions/scheduledjob"
)

// CreateEffect creates the Pod of that serial.
func CreateEffect(j *batchv1.Job, serial int) effect.CreatePod {
	return effect.CreatePod{Job: j.Name, Name: pod.Name(j.Name, j.UID, serial, events.NoIndex), Serial: serial, Index: events.NoIndex}
}

// AdoptEffect adopts the Pod under that serial, in its current version.
func AdoptEffect(j *batchv1.Job, p *corev1.Pod, serial int) effect.AdoptPod {
	return effect.AdoptPod{Job: j.Name, Name: p.Name, UID: p.UID, Version: events.Version(p.ResourceVersion), Serial: serial, Hold: true}
}

// CreateJobEffect creates the Job of a nominal time.
func CreateJobEffect(j *v1alpha1.ScheduledJob, nominal time.Time) effect.CreateJob {
	name := scheduledjob.BuildJob(j, nominal, "", time.UTC).Name
	return effect.CreateJob{ScheduledJob: j.Name, Name: name, Nominal: nominal, Generation: j.Generation}
}
