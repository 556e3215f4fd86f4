package scheduledjob

import (
	"encoding/json"
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// JobName returns the name of the Job of a nominal time.
func JobName(sj *v1alpha1.ScheduledJob, nominal time.Time) string { return childName(sj.Name, nominal) }

// childName returns the name of the Job of a nominal time: the ScheduledJob's, a hyphen, and a hash of the time (proposal
// scheduledjob.md, "Name of Jobs"). The UID is not part of it, so a leftover Job of a deleted namesake blocks the time, visibly.
func childName(scheduledJob string, nominal time.Time) string {
	return scheduledJob + "-" + events.NominalHash(nominal)
}

// BuildJob returns the Job of a nominal time: the current template, with the ScheduledJob that created it and the nominal time.
// Its Pods have both, too, so that a container can read through the downward API which run it is. managedBy applies if the
// template sets none. zone is the one in which the timestamp of Kubernetes' CronJobs is written.
func BuildJob(sj *v1alpha1.ScheduledJob, nominal time.Time, managedBy string, zone *time.Location) *batchv1.Job {
	j := build(sj, childName(sj.Name, nominal), managedBy, map[string]string{
		batchv1.CronJobScheduledTimestampAnnotation: nominal.In(zone).Format(time.RFC3339),
		v1alpha1.NominalTimeAnnotation:              nominal.UTC().Format(time.RFC3339),
	})
	delete(j.Annotations, v1alpha1.InstantiateAnnotation) // the template may be a copy of a Job that a user had started
	return j
}

// BuildBackfill returns the Job by which a user makes up for a nominal time that has passed. It has the name of the Job that the
// reconciler would have created, so that each time has at most one Job.
func BuildBackfill(sj *v1alpha1.ScheduledJob, nominal time.Time, managedBy string, zone *time.Location) *batchv1.Job {
	j := BuildJob(sj, nominal, managedBy, zone)
	j.Annotations[v1alpha1.InstantiateAnnotation] = v1alpha1.InstantiateManual
	return j
}

// BuildManual returns a Job that a user starts for now. Its containers may read the nominal time, and find now in its place; for
// the reconciler the Job has no nominal time. The name is the ScheduledJob's, a hyphen, and the suffix.
func BuildManual(sj *v1alpha1.ScheduledJob, suffix string, now time.Time, managedBy string) *batchv1.Job {
	j := build(sj, sj.Name+"-"+suffix, managedBy, map[string]string{v1alpha1.NominalTimeAnnotation: now.UTC().Format(time.RFC3339)})
	j.Annotations[v1alpha1.InstantiateAnnotation] = v1alpha1.InstantiateManual
	return j
}

func build(sj *v1alpha1.ScheduledJob, name, managedBy string, known map[string]string) *batchv1.Job {
	t := sj.Spec.JobTemplate.DeepCopy()
	if t.Spec.ManagedBy == nil {
		t.Spec.ManagedBy = &managedBy
	}
	known[v1alpha1.ScheduledJobAnnotation] = sj.Name
	t.Spec.Template.Annotations = with(t.Spec.Template.Annotations, known)
	annotations := with(t.Annotations, known)
	annotations[v1alpha1.CreatedByAnnotation] = createdBy(sj)
	yes := true
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   sj.Namespace,
			Name:        name,
			Labels:      with(t.Labels, map[string]string{v1alpha1.ScheduledJobUIDLabel: string(sj.UID)}),
			Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ScheduledJobKind, Name: sj.Name, UID: sj.UID,
				Controller: &yes, BlockOwnerDeletion: &yes,
			}},
		},
		Spec: t.Spec,
	}
}

// createdBy returns the serialized reference that the proposal requires ("Fields Added to Job Template").
func createdBy(sj *v1alpha1.ScheduledJob) string {
	b, err := json.Marshal(corev1.SerializedReference{
		TypeMeta: metav1.TypeMeta{Kind: "SerializedReference", APIVersion: "v1"},
		Reference: corev1.ObjectReference{Kind: v1alpha1.ScheduledJobKind, APIVersion: v1alpha1.GroupVersion.String(),
			Namespace: sj.Namespace, Name: sj.Name, UID: sj.UID, ResourceVersion: sj.ResourceVersion},
	})
	if err != nil {
		return "" // cannot happen: all fields are strings
	}
	return string(b)
}

func with(m, more map[string]string) map[string]string {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, more)
	return out
}
