package partition

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/finding"
)

// listensFor is how long reconcilers may take to send a heartbeat: each sends twice a second, and one that does not receive its own
// heartbeats every two seconds.
const listensFor = 5 * HeartbeatInterval

// Inspect listens to heartbeats for two and a half seconds, or until ctx ends, and reports which reconcilers live, and whether each
// partition of the functions is served. It sends nothing.
func Inspect(ctx context.Context, t Transport, functions []string) []finding.Finding {
	received := make(chan Heartbeat, 1024)
	stop, err := t.Listen(func(heartbeat Heartbeat) {
		select {
		case received <- heartbeat:
		default: // many more than an operator runs
		}
	})
	if err != nil {
		return []finding.Finding{finding.Worry("reconcilers", finding.Fail, "try again", "their heartbeats cannot be received: %v", err)}
	}
	defer stop()
	live := map[string]Heartbeat{}
	for over := time.After(listensFor); ; {
		select {
		case heartbeat := <-received:
			live[heartbeat.Member] = heartbeat
			if heartbeat.Gone {
				delete(live, heartbeat.Member)
			}
			continue
		case <-over:
		case <-ctx.Done():
		}
		return membersFound(slices.SortedFunc(maps.Values(live), func(a, b Heartbeat) int { return strings.Compare(a.Member, b.Member) }), functions)
	}
}

// membersFound judges the heartbeats that were received.
func membersFound(live []Heartbeat, functions []string) (all []finding.Finding) {
	const check = "reconcilers"
	if len(live) == 0 {
		return []finding.Finding{finding.Worry(check, finding.Warn, "start one; if some are running, look at /readyz of theirs, and whether all use this NATS and this --cluster-name", "none has sent a heartbeat")}
	}
	var names, unfit []string
	for _, m := range live {
		names = append(names, m.Member)
		if m.Unfit {
			unfit = append(unfit, m.Member)
		}
	}
	all = append(all, finding.Good(check, "%d live: %s", len(live), strings.Join(names, ", ")))
	if len(unfit) > 0 {
		all = append(all, finding.Worry(check, finding.Fail, "look at the network between them and the API server", "cannot reach the API server: %s", strings.Join(unfit, ", ")))
	}
	for _, f := range functions {
		all = append(all, sharesFound(f, live))
	}
	return all
}

// sharesFound reports which reconcilers serve the partitions of the function, and whether each partition is served.
func sharesFound(function string, live []Heartbeat) finding.Finding {
	check := "partitions of " + function
	var served Set
	var shares []string
	for _, m := range live {
		held := m.Holds[function]
		served |= held
		shares = append(shares, fmt.Sprintf("%s (version %d) %d", m.Member, m.Versions[function], held.Len()))
	}
	if served != All {
		return finding.Worry(check, finding.Warn, "wait a few seconds, since partitions may be on their way from one to another; then look at the reconcilers' logs",
			"%d of %d are served: %s", served.Len(), events.Partitions, strings.Join(shares, ", "))
	}
	return finding.Good(check, "all are served: %s", strings.Join(shares, ", "))
}
