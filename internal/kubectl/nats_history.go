package kubectl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/kubectl/history"
)

// read learns what the stream of public events holds of the ScheduledJob: its verdicts, and the ends of their Jobs that are not known
// yet. It returns a note about what is missing, "" if nothing is.
func (h *historyCommand) read(ctx context.Context, namespace string, known *history.History) (note string, err error) {
	since := time.Time{}
	if h.since > 0 {
		since = h.now().Add(-h.since)
	}
	from, unreadable, err := h.fetch(ctx, namespace, since, known)
	switch {
	case ctx.Err() != nil:
		return "", exit{errors.New("interrupted"), ExitInterrupted}
	case err != nil && h.object != nil:
		return "", fmt.Errorf("%w; without --nats-url, history shows the last ten verdicts", err)
	case err != nil:
		return "", err
	case h.uid(known) == "":
		return "", fmt.Errorf("there is no ScheduledJob %s in the namespace %s, and the stream of public events holds none of that name: -n chooses another, --cluster-name another cluster", h.name, namespace)
	case unreadable > 0:
		fmt.Fprintf(h.ErrOut, "warning: %d events cannot be read: a newer version of jobstream, or another program, has written them\n", unreadable)
	}
	return h.missing(from, since), nil
}

// fetch reads the stream. from is since when the stream has kept every event, unreadable the number of events that cannot be read.
func (h *historyCommand) fetch(ctx context.Context, namespace string, since time.Time, known *history.History) (from time.Time, unreadable int, err error) {
	v, err := h.nats.connect(ctx)
	if err != nil {
		return from, 0, err
	}
	defer v.Close()
	ticks, from, err := v.About(ctx, namespace, "schedule.tick", h.name, since)
	if err != nil {
		return from, 0, err
	}
	unreadable = learn(ticks, known)
	ends, err := v.Last(ctx, namespace, "job.finish", known.Unended(h.uid(known)))
	return from, unreadable + learn(ends, known), err
}

// missing notes what neither the stream nor the API server can know.
func (h *historyCommand) missing(from, since time.Time) string {
	switch {
	case h.object == nil:
		return fmt.Sprintf("note: the ScheduledJob %s was deleted: this is what the stream of public events holds, in UTC", h.name)
	case from.After(since) && from.Truncate(time.Second).After(h.object.CreationTimestamp.Time):
		return fmt.Sprintf("note: the stream of public events begins at %s, and the ScheduledJob is older", from.UTC().Format(time.RFC3339))
	}
	return ""
}

// learn adds the events, and returns how many could not be read.
func learn(all []bus.StoredEvent, known *history.History) (unreadable int) {
	for _, stored := range all {
		if stored.Err != nil {
			unreadable++
			continue
		}
		e, err := events.FromCloudEvent(stored.CloudEvent)
		if err != nil {
			unreadable++
			continue
		}
		known.Announced(e)
	}
	return unreadable
}
