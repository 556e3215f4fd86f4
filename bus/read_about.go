package bus

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

// About returns the stored public events of one kind about the object of that name, such as "schedule.tick" about a ScheduledJob,
// oldest first; since is when the first of them was stored at the earliest, zero for all. The kind must be one with a word in its
// subject. from is since when the stream has kept every event about whatever object: earlier ones were deleted, or never stored.
func (v *Inspector) About(ctx context.Context, namespace, kind, name string, since time.Time) (all []StoredEvent, from time.Time, err error) {
	stream, subject := v.bus.names.events(), v.bus.names.announcedAbout(namespace, kind, name)
	s, err := v.stream(ctx, stream)
	if err != nil {
		return nil, time.Time{}, err
	}
	var info *jetstream.StreamInfo
	err = v.bus.ask(ctx, requestTimeout, func(ctx context.Context) (err error) {
		info, err = s.Info(ctx, jetstream.WithSubjectFilter(subject))
		return err
	})
	if err != nil {
		return nil, time.Time{}, v.unread(stream, err)
	}
	from = keeps(info)
	var messages uint64
	for _, n := range info.State.Subjects {
		messages += n
	}
	if messages == 0 {
		return nil, from, nil
	}
	first, err := v.since(ctx, stream, subject, since)
	if err != nil || first == 0 {
		return nil, from, err
	}
	found, err := v.gather(ctx, s, subject, split(first, info.State.LastSeq, messages))
	for _, m := range found {
		all = append(all, storedEvent(m))
	}
	return all, from, err
}

// keeps returns since when the stream has kept every message.
func keeps(info *jetstream.StreamInfo) time.Time {
	switch {
	case info.State.FirstSeq <= max(info.Config.FirstSeq, 1):
		return info.Created // none was ever deleted
	case info.State.Msgs == 0:
		return info.TimeStamp
	}
	return info.State.FirstTime
}

// Last returns the newest stored public event of one kind about each of the objects, in any order, and none about an object of
// which the stream has none. The kind must be one with a word in its subject, such as "job.finish".
func (v *Inspector) Last(ctx context.Context, namespace, kind string, names []string) (all []StoredEvent, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	s, err := v.stream(ctx, v.bus.names.events())
	if err != nil {
		return nil, err
	}
	found := make([]*jetstream.RawStreamMsg, len(names))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readersAtOnce)
	for i, name := range names {
		g.Go(func() (err error) {
			found[i], err = v.last(ctx, s, v.bus.names.announcedAbout(namespace, kind, name))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for _, m := range found {
		if m != nil {
			all = append(all, storedEvent(m))
		}
	}
	return all, nil
}

// gather returns the messages of the subject in the spans, which it reads at the same time, oldest first.
func (v *Inspector) gather(ctx context.Context, s jetstream.Stream, subject string, parts []span) (all []*jetstream.RawStreamMsg, err error) {
	found := make([][]*jetstream.RawStreamMsg, len(parts))
	g, ctx := errgroup.WithContext(ctx)
	for i, part := range parts {
		g.Go(func() error {
			return v.walk(ctx, s, subject, part, func(m *jetstream.RawStreamMsg) error {
				found[i] = append(found[i], m)
				return nil
			})
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for _, part := range found {
		all = append(all, part...)
	}
	return all, nil
}
