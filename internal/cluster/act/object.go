package act

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/catalog"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster"
)

// object is what an Actor has to know about the objects of one function.
type object struct {
	// apiVersion and kind are for references to one.
	apiVersion, kind string
	// name returns the name of a cached object, "" of any other.
	name func(cluster.Identity) string
	// takeInventory does the effect of that name for one.
	takeInventory func(context.Context, events.Key, effect.TakeInventory) ([]events.Event, error)
}

// object returns the kind of object that the key's function works on. It fails for a function that is not in the catalog:
// treating its objects as Jobs would count one function's Pods by another's state.
func (a *Actor) object(key events.Key) (object, error) {
	switch catalog.Name(key.Function) {
	case catalog.Job:
		return object{batchv1.SchemeGroupVersion.String(), "Job", a.jobs.name, a.takeInventory}, nil
	case catalog.ScheduledJob:
		return object{v1alpha1.GroupVersion.String(), v1alpha1.ScheduledJobKind, a.scheduled.name, a.takeScheduleInventory}, nil
	}
	return object{}, fmt.Errorf("actor: no function %q works on a cluster: add it to functions/catalog, and its objects to internal/cluster/act/object.go", key.Function)
}
