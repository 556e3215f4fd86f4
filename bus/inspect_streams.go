package bus

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/finding"
)

const (
	// oldAge is how long the oldest fact of a function may wait before the operator should know.
	oldAge = time.Minute
	// skewWarn is a difference that clocks set by NTP never reach; from skewFail on, schedules are visibly early or late.
	skewWarn, skewFail = time.Second, 30 * time.Second
)

// states returns the names of the streams that hold the functions' states.
func (b *Bus) states(functions []string) (all []jetstream.StreamConfig) {
	for _, f := range functions {
		all = append(all, b.stateStream(f))
	}
	return all
}

// inspectStreams inspects every stream on the server, and the clocks of the servers on the way: each stream's leader shows its
// own.
func (b *Bus) inspectStreams(ctx context.Context, functions []string, now func() time.Time) []finding.Finding {
	var all []finding.Finding
	clocks := skews{}
	for _, want := range append(b.streams(), b.states(functions)...) {
		check := "stream " + want.Name
		began := now()
		s, err := b.find(ctx, want.Name)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			all = append(all, finding.Worry(check, finding.Warn, "the first program that starts makes it; if some have been running, look at their logs", "is not there"))
			continue
		case err != nil:
			all = append(all, finding.Worry(check, finding.Fail, "look at the NATS servers: has the stream a leader, are most of its replicas up?", "%v", explain(err)))
			continue
		}
		info := s.CachedInfo()
		clocks.add(leaderOf(b, info), info.TimeStamp, began, now())
		all = append(all, b.inspectStream(check, info, want))
		if want.Name == b.names.events() {
			all = append(all, inspectBacklog(backlog(*info)))
		}
		if want.Name == b.names.quarantine() {
			all = append(all, inspectQuarantine(info))
		}
		if want.Name == b.names.facts() || want.Name == b.names.timers() {
			all = append(all, b.inspectConsumers(ctx, s, functions)...)
		}
	}
	if len(clocks) == 0 {
		if err := b.readClock(ctx, clocks, now); err != nil {
			return append(all, finding.Good("clock of nats", "not visible until a stream stands: %v", err))
		}
	}
	return append(all, clocks.findings()...)
}

// readClock reads the clock of the connected server, which answers a request for the client's own user information with its time.
// A user whose permissions do not name that subject gets no answer.
func (b *Bus) readClock(ctx context.Context, clocks skews, now func() time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	began := now()
	m, err := b.nc.RequestWithContext(ctx, "$SYS.REQ.USER.INFO", nil)
	if err != nil {
		return fmt.Errorf("ask the server for its time: %w", err)
	}
	var answer struct {
		Server struct {
			Name string    `json:"name"`
			Time time.Time `json:"time"`
		} `json:"server"`
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return fmt.Errorf("decode the server's answer: %w", err)
	}
	if answer.Server.Time.IsZero() {
		return errors.New("the server's answer has no time")
	}
	clocks.add(answer.Server.Name, answer.Server.Time, began, now())
	return nil
}

// inspectStream compares a stream with its configuration.
func (b *Bus) inspectStream(check string, info *jetstream.StreamInfo, want jetstream.StreamConfig) finding.Finding {
	have := info.Config
	var wrong []string
	level, advice := finding.OK, ""
	worse := func(l finding.Level, what, remedy string) {
		wrong = append(wrong, what)
		if l > level || advice == "" {
			advice = remedy
		}
		level = max(level, l)
	}
	if what, remedy := b.conflict(have, want); what != "" {
		worse(finding.Warn, what+" as these flags want it", remedy)
	}
	if full := float64(info.State.Bytes) / float64(max(have.MaxBytes, 1)); b.names.drops(want.Name) && have.MaxBytes > 0 && full >= nearlyFull {
		remedy := "look for what fills it: are there far more Jobs than usual? No count is wrong"
		if flag := b.flagOf(want.Name, "max_bytes"); flag != "" {
			remedy = "raise " + flag + ", for all programs: inventories cost the API server more than memory costs the bus"
		}
		worse(finding.Warn, fmt.Sprintf("%.0f %% of its %s are full: the oldest go", 100*full, bytesText(have.MaxBytes)), remedy)
	}
	if have.Storage != jetstream.FileStorage {
		worse(finding.Warn, "is kept in "+strings.ToLower(have.Storage.String()), "delete it, and it is recreated on disk")
	}
	if c := info.Cluster; c != nil {
		var offline, behind []string
		for _, p := range c.Replicas {
			switch {
			case p.Offline:
				offline = append(offline, p.Name)
			case !p.Current:
				behind = append(behind, fmt.Sprintf("%s by %d", p.Name, p.Lag))
			}
		}
		if c.Leader == "" {
			worse(finding.Fail, "has no leader", "bring back most of the servers that hold it")
		}
		if len(offline) > 0 {
			worse(finding.Warn, "offline: "+strings.Join(offline, ", "), "bring the server back: one more loss and work stands still")
		}
		if len(behind) > 0 {
			worse(finding.Warn, "behind: "+strings.Join(behind, ", "), "wait for it to catch up before another server is restarted")
		}
	}
	text := fmt.Sprintf("%d messages, %s, replicas %d, leader %s", info.State.Msgs, bytesText(int64(info.State.Bytes)), have.Replicas, leaderOf(b, info))
	if level == finding.OK {
		return finding.Good(check, "%s", text)
	}
	return finding.Worry(check, level, advice, "%s; %s", strings.Join(wrong, "; "), text)
}

// leaderOf returns the server that leads the stream.
func leaderOf(b *Bus, info *jetstream.StreamInfo) string {
	if info.Cluster != nil && info.Cluster.Leader != "" {
		return info.Cluster.Leader
	}
	return b.nc.ConnectedServerName()
}

// inspectBacklog reports whether subscribers lose events within the promised age.
func inspectBacklog(l Backlog) finding.Finding {
	const check = "room for public events"
	text := fmt.Sprintf("%d events, %s of %s", l.Messages, bytesText(int64(l.Bytes)), bytesText(l.MaxBytes)) //nolint:gosec // it is no exabyte
	if l.Full() < nearlyFull {
		return finding.Good(check, "%s", text)
	}
	return finding.Worry(check, finding.Warn, "the oldest go before their time: raise --nats-events-bytes, or shorten --nats-events-age, for all programs",
		"%s, the oldest of %s", text, l.Oldest.UTC().Format(time.RFC3339))
}

func inspectQuarantine(info *jetstream.StreamInfo) finding.Finding {
	const check = "quarantine"
	if info.State.Msgs == 0 {
		return finding.Good(check, "empty")
	}
	return finding.Worry(check, finding.Warn, `"jobstream-reconciler quarantine" says why, and how to put them back`, "%d messages were set aside", info.State.Msgs)
}

// inspectConsumers reports how fast the functions consume a stream.
func (b *Bus) inspectConsumers(ctx context.Context, s jetstream.Stream, functions []string) []finding.Finding {
	have := map[string]*jetstream.ConsumerInfo{}
	l := s.ListConsumers(ctx)
	for c := range l.Info() {
		have[c.Name] = c
	}
	if err := l.Err(); err != nil {
		return []finding.Finding{finding.Worry("consumers of "+s.CachedInfo().Config.Name, finding.Fail, "look at the NATS servers' logs", "cannot be listed: %v", err)}
	}
	name, what := factsConsumer, "facts"
	if s.CachedInfo().Config.Name == b.names.timers() {
		name, what = firedConsumer, "fired timers"
	}
	var all []finding.Finding
	for _, f := range functions {
		var partitions []*jetstream.ConsumerInfo
		for n := range events.Partitions {
			if c := have[name(f, n)]; c != nil {
				partitions = append(partitions, c)
			}
		}
		all = append(all, b.inspectPartitions(ctx, s, what+" for "+f, partitions))
	}
	return all
}

func (b *Bus) inspectPartitions(ctx context.Context, s jetstream.Stream, check string, partitions []*jetstream.ConsumerInfo) finding.Finding {
	var waiting uint64
	var worked, deaf int
	var oldest time.Duration
	for _, c := range partitions {
		waiting += c.NumPending
		worked += c.NumAckPending
		if c.NumWaiting == 0 {
			deaf++
		}
		if c.NumPending > 0 || c.NumAckPending > 0 {
			if m, err := s.GetMsg(ctx, c.AckFloor.Stream+1, jetstream.WithGetMsgSubject(c.Config.FilterSubject)); err == nil {
				oldest = max(oldest, c.TimeStamp.Sub(m.Time))
			}
		}
	}
	text := fmt.Sprintf("%d waiting, %d being worked on, the oldest for %v", waiting, worked, oldest.Round(100*time.Millisecond))
	switch {
	case len(partitions) < events.Partitions:
		return finding.Worry(check, finding.Warn, "start a reconciler, which creates them; if some have been running, look at their logs",
			"%d of %d partitions have no consumer; %s", events.Partitions-len(partitions), events.Partitions, text)
	case deaf > 0:
		return finding.Worry(check, finding.Warn, "start a reconciler, or look at /readyz of those that run", "no reconciler listens to %d of %d partitions; %s", deaf, len(partitions), text)
	case oldest > oldAge:
		return finding.Worry(check, finding.Warn, "look at the reconcilers' logs; more reconcilers, or more --concurrent-requests", "%s", text)
	}
	return finding.Good(check, "%s", text)
}

// skew is the least by which a clock differs from this program's; doubt is the time that the answer took.
type skew struct{ ahead, doubt time.Duration }

// skews are the skews of the servers by name, each the most certain of its measurements.
type skews map[string]skew

func (s skews) add(server string, theirs, sent, came time.Time) {
	if theirs.IsZero() {
		return
	}
	doubt := came.Sub(sent) / 2
	m := skew{ahead: theirs.Sub(sent.Add(doubt)), doubt: doubt}
	if have, ok := s[server]; !ok || m.doubt < have.doubt {
		s[server] = m
	}
}

func (s skews) findings() (all []finding.Finding) {
	for _, server := range slices.SortedFunc(maps.Keys(s), cmp.Compare[string]) {
		m := s[server]
		all = append(all, finding.Skew("clock of nats server "+server, m.ahead, m.doubt, skewWarn, skewFail))
	}
	return all
}
