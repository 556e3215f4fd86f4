package bus

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jobstream/jobstream/internal/finding"
)

const (
	// monitorPort is where NATS servers serve their monitoring, to every client, unless they are configured otherwise.
	monitorPort = "8222"
	// monitorTimeout is how long that port may take to answer: within a cluster, a reachable one answers at once.
	monitorTimeout = time.Second
)

// inspectOpen looks for access that other clients or this program have and do not need.
func (b *Bus) inspectOpen(ctx context.Context) []finding.Finding {
	all := []finding.Finding{b.inspectWhoWeAre(), b.inspectTLS()}
	all = append(all, b.inspectExcess()...)
	return append(all, b.inspectMonitor(ctx))
}

// inspectWhoWeAre reports whether the server requires authentication.
func (b *Bus) inspectWhoWeAre() finding.Finding {
	const check = "nats credentials"
	switch {
	case b.cfg.Server != nil:
		return finding.Good(check, "the server is in this process")
	case !b.nc.AuthRequired():
		return finding.Worry(check, finding.Warn, "give it users: deploy/README.md explains how, and deploy/nats/accounts.conf which",
			"the server requires no authentication: any client that reaches it can create Pods by publishing facts, and read all streams")
	case b.cfg.userInURL():
		return finding.Worry(check, finding.Warn, "move them to files, and name these by --nats-user-file and --nats-password-file",
			"they are in --nats-url, readable to every process and user that sees this program's environment or arguments, and are not read again when they are rotated")
	}
	return finding.Good(check, "the server requires authentication")
}

// inspectTLS reports whether the connection to the server is encrypted, where it leaves this machine.
func (b *Bus) inspectTLS() finding.Finding {
	const check = "nats tls"
	if _, err := b.nc.TLSConnectionState(); err == nil {
		return finding.Good(check, "the connection is encrypted, and the server's certificate is trusted")
	}
	if far := slices.DeleteFunc(b.hosts(), loopback); len(far) > 0 {
		return finding.Worry(check, finding.Warn, "give the server a certificate, use tls:// in --nats-url, and name its authority by --nats-ca: deploy/README.md explains how",
			"the connection to %s is not encrypted: an eavesdropper on the network reads credentials and facts", strings.Join(far, ","))
	}
	return finding.Good(check, "not used: the server is on this machine")
}

// hosts returns the hosts of all configured servers, without ports; none where the server is in this process.
func (b *Bus) hosts() (all []string) {
	if b.cfg.Server != nil {
		return nil
	}
	for s := range strings.SplitSeq(b.cfg.URL, ",") {
		s = strings.TrimSpace(s)
		if !strings.Contains(s, "://") {
			s = "nats://" + s
		}
		if u, err := url.Parse(s); err == nil && u.Hostname() != "" && !slices.Contains(all, u.Hostname()) {
			all = append(all, u.Hostname())
		}
	}
	return all
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// inspectExcess tries what no jobstream program does; a user that may do it has more permissions than needed. None of the
// attempts has an effect where it is allowed.
func (b *Bus) inspectExcess() []finding.Finding {
	const check = "nats excess permissions"
	if !b.nc.AuthRequired() || b.cfg.Role == Everything {
		return nil // reported already; or the role uses everything
	}
	probes := []probe{
		{subject: impossibleStream, allow: "subjects that are not jobstream's, such as " + impossibleStream},
		b.tryAPI("STREAM.DELETE.jobstream_doctor_never"),
		b.tryAPI("CONSUMER.DELETE." + b.names.events() + ".jobstream_doctor_never"),
	}
	if b.cfg.Role == Reconciler {
		probes = append(probes, b.probesOfTrigger()[0], b.tryStore(b.names.family("fired"), b.names.firedTimer(doctor, "doctor")))
	}
	_, denied, _, err := b.tryAll(b.nc.NewInbox(), probes)
	if err != nil {
		return nil // inspectPermissions meets the same error
	}
	var open []string
	for _, p := range probes {
		if !slices.Contains(denied[p.allow], p.subject) {
			open = append(open, "publish to "+p.subject)
		}
	}
	for _, subject := range []string{impossibleStream, b.names.family("facts")} {
		if deaf, err := b.cannotSubscribe(subject); err == nil && !deaf {
			open = append(open, "subscribe to "+subject)
		}
	}
	if len(open) == 0 {
		return []finding.Finding{finding.Good(check, "%d unneeded subjects tried, all are refused", len(probes)+2)}
	}
	return []finding.Finding{finding.Worry(check, finding.Warn, "give this program's user what deploy/nats/accounts.conf gives to it, no more",
		"this program's user may do what the program never does: %s", strings.Join(open, ", "))}
}

// inspectMonitor looks for servers whose monitoring shows every client which others are connected, from where, and what for.
func (b *Bus) inspectMonitor(ctx context.Context) finding.Finding {
	const check = "nats monitoring"
	var open []string
	for _, host := range slices.DeleteFunc(b.hosts(), loopback) {
		if where := net.JoinHostPort(host, monitorPort); monitors(ctx, "http://"+where) {
			open = append(open, where)
		}
	}
	if len(open) > 0 {
		return finding.Worry(check, finding.Warn, "http: 127.0.0.1:"+monitorPort+" in the server's configuration, and a NetworkPolicy",
			"%s shows every client which others are connected, and what for", strings.Join(open, ","))
	}
	return finding.Good(check, "not visible from here on port %s", monitorPort)
}

// monitors reports whether a NATS server serves its monitoring there.
func monitors(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, monitorTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/varz", nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	var varz struct {
		ID string `json:"server_id"`
	}
	return json.NewDecoder(answer.Body).Decode(&varz) == nil && varz.ID != ""
}
