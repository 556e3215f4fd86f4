package function

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/internal/cluster/watch"
	"github.com/jobstream/jobstream/internal/engine"
)

// SetLabel sets Label on the Job. Precondition: the key's UID, and Version, so that a late effect does not overwrite a newer value.
type SetLabel struct {
	Job     string
	Version uint64
	Value   string // "" removes the label
}

// Kind implements effect.Effect.
func (SetLabel) Kind() string { return "SetLabel" }

// String implements effect.Effect.
func (e SetLabel) String() string { return fmt.Sprintf("SetLabel %s@%d %q", e.Job, e.Version, e.Value) }

// Actor carries SetLabel out. Claim is the trigger's: both must read the same labels.
type Actor struct {
	Client kubernetes.Interface
	Claim  events.Claim
}

// Act implements engine.Actor: it answers with the Job as the API server has it now, whether the label was written or not.
func (a Actor) Act(ctx context.Context, key events.Key, e effect.Effect) ([]events.Event, error) {
	set, ok := e.(SetLabel)
	if !ok {
		return nil, fmt.Errorf("function %s: effect %s is unknown here: give it to another actor", Name, e.Kind())
	}
	jobs := a.Client.BatchV1().Jobs(key.Namespace)
	j, err := jobs.Patch(ctx, set.Job, types.MergePatchType, set.patch(key.UID), metav1.PatchOptions{})
	if apierrors.IsConflict(err) { // it has changed, or is another one of that name
		j, err = jobs.Get(ctx, set.Job, metav1.GetOptions{})
	}
	switch {
	case apierrors.IsNotFound(err), err == nil && j.UID != key.UID:
		return []events.Event{events.JobGone{Name: set.Job}}, nil
	case err != nil:
		return nil, engine.Retry{Err: fmt.Errorf("label the Job %s: %w", set.Job, err)}
	}
	return []events.Event{events.JobObserved{Job: events.ProjectJob(j, a.Claim)}}, nil
}

// patch holds the preconditions: the API server refuses a patch that would change UID or resourceVersion.
func (e SetLabel) patch(uid types.UID) []byte {
	label := map[string]any{Label: nil}
	if e.Value != "" {
		label[Label] = e.Value
	}
	b, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": uid, "resourceVersion": strconv.FormatUint(e.Version, 10), "labels": label,
	}})
	if err != nil {
		panic(err) // strings in maps
	}
	return b
}

// Sink publishes what a trigger tells the Job function once more, for this one. It stands between a watch.Watcher and the bus.
type Sink struct{ watch.Sink }

// Publish implements watch.Sink.
func (s Sink) Publish(ctx context.Context, f events.Fact) error {
	if err := s.Sink.Publish(ctx, f); err != nil {
		return err
	}
	if f.Key.Function != job.Name || !slices.Contains(New().Wakes, f.Event.Type()) {
		return nil
	}
	f.Key.Function = Name
	return s.Sink.Publish(ctx, f)
}
