package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/internal/finding"
	"github.com/jobstream/jobstream/internal/partition"
)

// asksAgain is the pause before a cluster that may be electing its leader is asked again.
const asksAgain = 2

// varzTimeout is how long servers may take to report their configuration. Each answers at once, but the number of servers is
// unknown.
const varzTimeout = 500 * time.Millisecond

// Inspector is a read-only connection for operators: it looks at everything and creates and repairs nothing. So it finds problems
// that a Bus would have repaired silently.
type Inspector struct{ bus *Bus }

// Inspect connects. It requires nothing more of the server: Findings reports what is wrong with it.
func Inspect(ctx context.Context, c Config) (*Inspector, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.ConnectTimeout)
	defer cancel()
	b, err := reach(ctx, c)
	if err != nil {
		return nil, err
	}
	return &Inspector{b}, nil
}

// Close ends the connection.
func (v *Inspector) Close() { v.bus.Close() }

// Findings inspects the server, the permissions of this program's user, and every stream and consumer that the functions need.
// now is this program's clock.
func (v *Inspector) Findings(ctx context.Context, functions []string, now func() time.Time) []finding.Finding {
	b := v.bus
	all := []finding.Finding{finding.Good("nats", "%s: connected to %s, nats-server %s", b.cfg.where(), b.nc.ConnectedServerName(), b.nc.ConnectedServerVersion())}
	all = append(all, b.inspectOpen(ctx)...)
	info, err := b.account(ctx)
	for again := 0; again < asksAgain && comingUp(err) && ctx.Err() == nil; again++ {
		info, err = b.account(ctx)
	}
	if err != nil {
		all = append(all, faulty("nats jetstream", err))
		return append(all, b.inspectPermissions(functions)...) // missing permissions may be the cause
	}
	all = append(all, b.inspectLevel(info), b.inspectPayload(), b.inspectCluster())
	all = append(all, b.inspectAccount(info, functions)...)
	all = append(all, b.inspectSync(ctx))
	all = append(all, b.inspectPermissions(functions)...)
	all = append(all, partition.Inspect(ctx, b.Members(), functions)...)
	return append(all, b.inspectStreams(ctx, functions, now)...)
}

// faulty returns a finding about an error. The advice is the error's own remedy, if it has one.
func faulty(check string, err error) finding.Finding {
	lacks := (*shortcoming)(nil)
	if errors.As(err, &lacks) {
		return finding.Worry(check, finding.Fail, lacks.remedy, "%s", lacks.cause)
	}
	return finding.Worry(check, finding.Fail, "look at the server's log, and at the lines about permissions here", "%v", err)
}

func (b *Bus) inspectLevel(info *jetstream.AccountInfo) finding.Finding {
	if lacks := b.checkLevel(info); lacks != nil {
		return faulty("nats jetstream", lacks)
	}
	return finding.Good("nats jetstream", "API level %d, at least %d is needed", info.API.Level, apiLevel)
}

func (b *Bus) inspectPayload() finding.Finding {
	if lacks := b.checkPayload(); lacks != nil {
		return faulty("nats max_payload", lacks)
	}
	return finding.Good("nats max_payload", "%d bytes, at least %d are needed", b.nc.MaxPayload(), minPayload)
}

// inspectCluster compares the configured replicas with the servers that exist. A client knows only the addresses that servers
// advertise: one server may have two, and a server may advertise none.
func (b *Bus) inspectCluster() finding.Finding {
	const check = "nats cluster"
	name, addresses, want := b.nc.ConnectedClusterName(), len(b.nc.DiscoveredServers()), b.cfg.Replicas
	switch {
	case name == "" && want > 1:
		return finding.Worry(check, finding.Fail, "ask for --nats-replicas=1, or make a NATS cluster of three servers",
			"%d replicas are asked for, and the server is alone", want)
	case name == "":
		return finding.Good(check, "one server, one replica: while it is away, work stands still")
	case want == 1:
		return finding.Worry(check, finding.Warn, "with three servers or more, set --nats-replicas=3 for all programs",
			"cluster %q, %d more addresses known, and one replica is asked for: while the server that has it is away, work stands still", name, addresses)
	}
	return finding.Good(check, "cluster %q, %d more addresses known; %d replicas are asked for", name, addresses, want)
}

// consumersEach is the number of consumers of each function.
const consumersEach = 2 * 32

// inspectAccount compares the account's limits with what the bus needs.
func (b *Bus) inspectAccount(info *jetstream.AccountInfo, functions []string) []finding.Finding {
	const check = "nats account"
	tier := info.Tier
	if of, ok := info.Tiers[fmt.Sprintf("R%d", b.cfg.Replicas)]; ok {
		tier = of
	}
	streams := append(b.streams(), b.states(functions)...)
	var bytes int64
	for _, s := range streams {
		bytes += max(s.MaxBytes, 0)
	}
	limits, consumers := tier.Limits, consumersEach*len(functions)
	var all []finding.Finding
	short := func(what string, have, want int64) {
		if have >= 0 && have < want { // -1 is no limit
			all = append(all, finding.Worry(check, finding.Fail, "raise the limit in the account's jetstream limits", "%s is %d, and jobstream needs %d", what, have, want))
		}
	}
	short("its limit of streams", int64(limits.MaxStreams), int64(len(streams)))
	short("its limit of consumers", int64(limits.MaxConsumers), int64(consumers))
	if limits.MaxStore > 0 && limits.MaxStore < bytes { // in some answers, 0 means no limit, too
		all = append(all, finding.Worry(check, finding.Warn, "raise the account's max_file, or bound the streams by --nats-facts-bytes, --nats-events-bytes and --nats-state-bytes",
			"it may store %s, and the bounds of jobstream's streams add up to %s", bytesText(limits.MaxStore), bytesText(bytes)))
	}
	if len(all) == 0 {
		all = append(all, finding.Good(check, "%d streams, %d consumers, %s stored; no limit is in the way", tier.Streams, tier.Consumers, bytesText(int64(tier.Store))))
	}
	return all
}

// inspectSync reports what a power failure of a server can lose. Only the system account sees that, or an account that imports
// its VARZ.
func (b *Bus) inspectSync(ctx context.Context) finding.Finding {
	const check = "nats fsync"
	const unseen = "not visible to this program's account. Servers sync every two minutes unless sync_interval says otherwise (see config in http://<server>:8222/jsz). " +
		"Counts are safe either way; sync_interval: always also keeps public events through a power failure"
	intervals := b.syncPolicies(ctx)
	if len(intervals) == 0 {
		return finding.Good(check, unseen)
	}
	for server, every := range intervals {
		if every > 0 {
			return finding.Good(check, "%d servers tell; %s syncs every %v: a power failure can take the public events of that time. Counts are safe; sync_interval: always keeps those, too",
				len(intervals), server, every)
		}
	}
	return finding.Good(check, "%d servers tell, and each syncs every write", len(intervals))
}

// syncPolicies asks all servers; 0 stands for a server that syncs every write.
func (b *Bus) syncPolicies(ctx context.Context) map[string]time.Duration {
	inbox := b.nc.NewInbox()
	sub, err := b.nc.SubscribeSync(inbox)
	if err != nil {
		return nil
	}
	defer func() { _ = sub.Unsubscribe() }()
	if b.nc.PublishRequest("$SYS.REQ.SERVER.PING.VARZ", inbox, nil) != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, varzTimeout)
	defer cancel()
	all := map[string]time.Duration{}
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil { // no server may answer this account, or all have answered
			return all
		}
		var answer struct {
			Data struct {
				Name      string `json:"server_name"`
				JetStream struct {
					Config *struct {
						Interval time.Duration `json:"sync_interval"`
						Always   bool          `json:"sync_always"`
					} `json:"config"`
				} `json:"jetstream"`
			} `json:"data"`
		}
		if json.Unmarshal(m.Data, &answer) != nil || answer.Data.JetStream.Config == nil {
			continue
		}
		c := answer.Data.JetStream.Config
		if c.Always {
			c.Interval = 0
		}
		all[answer.Data.Name] = c.Interval
	}
}

// bytesText formats a number of bytes for people.
func bytesText(n int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.size {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(u.size), u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

// violated reports whether the server has refused the subject since the connection was made. A refusal arrives before the answer
// to a Flush that follows it.
func violated(nc *nats.Conn, subject string) bool {
	err := nc.LastError()
	return errors.Is(err, nats.ErrPermissionViolation) && containsQuoted(err.Error(), subject)
}
