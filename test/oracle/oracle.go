package oracle

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install" // defaults and conversions of batch/v1
	"k8s.io/kubernetes/pkg/apis/batch/validation"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // defaults and conversions of the Pod template
	jobregistry "k8s.io/kubernetes/pkg/registry/batch/job"

	"github.com/jobstream/jobstream/events"
)

// Verdict returns nil if the API server would store the status and the annotations of after on the Job before, and its refusal
// if not. A write that changes the projected spec is an error, too: jobstream writes none.
func Verdict(before, after events.Job) error {
	return StatusUpdate(Rebuild(before), Rebuild(after))
}

// Creatable returns an error if the API server would not let a user create such a Job.
func Creatable(j events.Job) error { return Create(Rebuild(j)) }

// Editable returns an error if the API server would not let a user change the spec of before into that of after.
func Editable(before, after events.Job) error { return Update(Rebuild(before), Rebuild(after)) }

// StatusUpdate is Verdict for whole objects: a PUT of after to the status of before.
func StatusUpdate(before, after *batchv1.Job) error {
	old, next, err := pair(before, after)
	if err != nil {
		return err
	}
	if !apiequality.Semantic.DeepEqual(old.Spec, next.Spec) {
		return errors.New("a status write changes the spec")
	}
	return rest.BeforeUpdate(jobregistry.StatusStrategy, request(before), next, old)
}

// Update is Editable for whole objects: a PUT of after.
func Update(before, after *batchv1.Job) error {
	old, next, err := pair(before, after)
	if err != nil {
		return err
	}
	return rest.BeforeUpdate(jobregistry.Strategy, request(before), next, old)
}

// Create is Creatable for whole objects: a POST, except that the UID is given.
func Create(j *batchv1.Job) error {
	in, err := internal(j)
	if err != nil {
		return err
	}
	in.ResourceVersion = ""
	return rest.BeforeCreate(jobregistry.Strategy, request(j), in)
}

// Sound returns an error if the status would not be accepted if all of it were new. The API server validates a field only when
// it changes, so a status that is sound for one spec may not be so for the next; but every stored status was sound once.
func Sound(j *batchv1.Job) error {
	in, err := stored(j)
	if err != nil {
		return err
	}
	suspendedWithNothingToDo := in.Spec.Suspend != nil && *in.Spec.Suspend && in.Spec.Completions != nil && *in.Spec.Completions == 0
	return validation.ValidateJobUpdateStatus(in, in, validation.JobStatusValidationOptions{
		RejectInvalidCompletedIndexes:                true,
		RejectInvalidFailedIndexes:                   true,
		RejectCompletedIndexesForNonIndexedJob:       true,
		RejectFailedIndexesForNoBackoffLimitPerIndex: true,
		RejectFailedIndexesOverlappingCompleted:      true,
		RejectFailedJobWithoutFailureTarget:          true,
		RejectCompleteJobWithoutSuccessCriteriaMet:   true,
		RejectFinishedJobWithActivePods:              true,
		RejectFinishedJobWithoutStartTime:            !suspendedWithNothingToDo,
		RejectFinishedJobWithUncountedTerminatedPods: true,
		RejectCompletionTimeBeforeStartTime:          true,
		RejectNotCompleteJobWithCompletionTime:       true,
		RejectCompleteJobWithoutCompletionTime:       true,
		RejectCompleteJobWithFailedCondition:         true,
		RejectCompleteJobWithFailureTargetCondition:  true,
		AllowForSuccessCriteriaMetInExtendedScope:    true,
		RejectMoreReadyThanActivePods:                true,
		RejectFinishedJobWithTerminatingPods:         true,
	}).ToAggregate()
}

// Stored returns the Job as the API server stores and shows it: defaulted, with the generated selector.
func Stored(j *batchv1.Job) (*batchv1.Job, error) {
	in, err := stored(j)
	if err != nil {
		return nil, err
	}
	out := &batchv1.Job{}
	return out, legacyscheme.Scheme.Convert(in, out, nil)
}

func request(j *batchv1.Job) context.Context {
	quiet := klog.NewContext(context.Background(), klog.Logger{})
	ctx := genericapirequest.WithNamespace(quiet, j.Namespace)
	return genericapirequest.WithRequestInfo(ctx, &genericapirequest.RequestInfo{
		IsResourceRequest: true, APIGroup: "batch", APIVersion: "v1", Resource: "jobs", Namespace: j.Namespace, Name: j.Name})
}

// pair returns the stored object and the one of the PUT, which has the resourceVersion of the former.
func pair(before, after *batchv1.Job) (old, next *batch.Job, err error) {
	if old, err = stored(before); err != nil {
		return nil, nil, err
	}
	if next, err = stored(after); err != nil {
		return nil, nil, err
	}
	next.ResourceVersion = old.ResourceVersion
	return old, next, nil
}

// stored returns the Job after the preparation for its creation, with its later status.
func stored(j *batchv1.Job) (*batch.Job, error) {
	in, err := internal(j)
	if err != nil {
		return nil, err
	}
	status, generation := in.Status, in.Generation
	jobregistry.Strategy.PrepareForCreate(request(j), in)
	in.Status, in.Generation = status, generation
	return in, nil
}

// internal decodes what a client sends: over the wire, where times lose their nanoseconds, defaulted, converted.
func internal(j *batchv1.Job) (*batch.Job, error) {
	wire, err := j.Marshal()
	if err != nil {
		return nil, fmt.Errorf("encode the Job: %w", err)
	}
	versioned, out := &batchv1.Job{}, &batch.Job{}
	if err := versioned.Unmarshal(wire); err != nil {
		return nil, fmt.Errorf("decode the Job: %w", err)
	}
	legacyscheme.Scheme.Default(versioned)
	return out, legacyscheme.Scheme.Convert(versioned, out, nil)
}
