package act

import (
	"context"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/cluster"
	"github.com/jobstream/jobstream/internal/engine"
)

const (
	// publishedVariables and publishedValue limit the values of one failed index in a JobFinish: of 20 indexes, these are 50 kB.
	publishedVariables = 10
	publishedValue     = 256
)

// Announcing wraps an Announcer. A JobFinish whose Job asks for the values of its failed indexes gets them here, on its way out: neither
// facts nor states have values (ADR 40). If they cannot be known, because the ConfigMap or the Job is gone, the event goes without. If the
// API server does not answer, the announcement fails and is repeated.
func (a *Actor) Announcing(next engine.Announcer) engine.Announcer { return valuesAnnouncer{next, a} }

type valuesAnnouncer struct {
	engine.Announcer
	actor *Actor
}

// Announce implements engine.Announcer.
func (v valuesAnnouncer) Announce(ctx context.Context, p events.Public) error {
	if e, ok := p.(events.JobFinished); ok && e.FailedValues != nil {
		values, err := v.actor.failedValues(ctx, e.Job, *e.FailedValues)
		if _, later := retriable(err); err != nil && later {
			return fmt.Errorf("announce %s: read the values of its failed indexes: %w", events.PublicID(p), err)
		}
		e.FailedValues = values
		p = e
	}
	return v.Announcer.Announce(ctx, p)
}

// failedValues returns the indexes with their values; nil if none has any. The Job itself has to ask for it, not only the state, which may
// have been forged. Usually both the Job and the values are still cached, since a Pod or a status has just been written.
func (a *Actor) failedValues(ctx context.Context, of events.Reference, wanted events.FailedValues) (*events.FailedValues, error) {
	key := events.Key{Namespace: of.Namespace, UID: of.UID}
	asks := func(j *batchv1.Job) bool {
		p := events.ProjectJob(j, a.claim)
		return !p.Foreign && p.Options.PublishFailedValues && p.Options.Parameters == wanted.ConfigMap && wanted.ConfigMap != ""
	}
	j, err := a.jobs.load(ctx, cluster.IdentityOfKey(key), asks, func(ctx context.Context) (*batchv1.Job, error) { return a.getJob(ctx, key, of.Name) })
	if err != nil || j == nil || !asks(j) {
		return nil, err
	}
	parameters, err := a.parameters.load(ctx, types.NamespacedName{Namespace: of.Namespace, Name: wanted.ConfigMap}, maxParametersAge, a.getParameters)
	if err != nil {
		return nil, err
	}
	out := &events.FailedValues{ConfigMap: wanted.ConfigMap}
	for _, index := range wanted.Indexes {
		if index.Values = parameters.Values(index.Index, publishedVariables); index.Values == nil {
			continue
		}
		for name, value := range index.Values {
			index.Values[name] = cutValue(value)
		}
		out.Indexes = append(out.Indexes, index)
	}
	if len(out.Indexes) == 0 {
		return nil, nil
	}
	return out, nil
}

// cutValue limits a value to publishedValue bytes, with an ellipsis where it is cut.
func cutValue(value string) string {
	const ellipsis = "…"
	if len(value) <= publishedValue {
		return value
	}
	return strings.ToValidUTF8(value[:publishedValue-len(ellipsis)], "") + ellipsis
}
