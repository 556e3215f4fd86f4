package kubectl

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/bus/cloudevent"
	"github.com/jobstream/jobstream/bus/embedded"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/dev/size"
)

// stream is a bus on a NATS server of the test's own.
type stream struct {
	*bus.Bus
	t   *testing.T
	url string
}

// newStream starts a NATS server with the streams of a cluster. Events are encoded in that mode.
func newStream(t *testing.T, mode cloudevent.Mode) stream {
	t.Helper()
	s, err := embedded.Start(embedded.Config{StoreDir: t.TempDir(), Port: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	return connectStream(t, s.URL(), mode)
}

func connectStream(t *testing.T, url string, mode cloudevent.Mode) stream {
	t.Helper()
	b, err := bus.Connect(t.Context(), bus.Config{URL: url, Cluster: "default", EventMode: mode, ConnectTimeout: patience, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return stream{b, t, url}
}

func (s stream) announce(all ...events.Public) {
	s.t.Helper()
	for _, e := range all {
		if err := s.Announce(s.t.Context(), e); err != nil {
			s.t.Fatal(err)
		}
	}
}

// ran returns the events of a Job of a nominal time that took a minute: its verdict and its end.
func ran(of events.Reference, nominal time.Time, result events.JobResult) []events.Public {
	job := events.Reference{Namespace: of.Namespace, Name: of.Name + "-" + events.NominalHash(nominal), UID: types.UID("job of " + nominal.String())}
	return []events.Public{events.TickDecided{ScheduledJob: of, Verdict: events.Started, Nominal: nominal, Count: 1, Job: &job},
		events.JobFinished{Job: job, Result: result, Reason: "BackoffLimitExceeded", Created: nominal, Start: nominal, End: nominal.Add(time.Minute),
			Owner: &events.RunOwner{ScheduledJob: of, Nominal: nominal}}}
}

// TestHistoryFromTheStream: the stream has what the status has forgotten, in either mode, and the status and the Jobs have what the stream
// lacks. Neither another ScheduledJob nor an earlier one of the same name is mixed in.
func TestHistoryFromTheStream(t *testing.T) {
	for _, mode := range []cloudevent.Mode{cloudevent.Structured, cloudevent.Binary} {
		t.Run(string(mode), func(t *testing.T) {
			s, w := newStream(t, mode), newWorld(t)
			now := time.Now()
			sj := w.withHistory(now)
			of := events.Reference{Namespace: w.ns, Name: sj.Name, UID: sj.UID}
			hour := now.UTC().Truncate(time.Hour)
			for _, other := range []events.Reference{{Namespace: w.ns, Name: "other", UID: "other"}, {Namespace: "other", Name: of.Name, UID: of.UID}, {Namespace: w.ns, Name: of.Name, UID: "an earlier one"}} {
				s.announce(ran(other, hour, events.JobFailed)...)
			}
			for i := range 20 {
				s.announce(ran(of, hour.Add(time.Duration(i-30)*time.Hour), map[bool]events.JobResult{true: events.JobFailed, false: events.JobSucceeded}[i == 7])...)
			}
			s.announce(events.TickDecided{ScheduledJob: of, Verdict: events.Skipped, Reason: "Suspended", Nominal: hour.Add(-10 * time.Hour), Until: hour.Add(-6 * time.Hour), Count: 1_000_000})
			s.announce(events.TickDecided{ScheduledJob: of, Verdict: events.Skipped, Reason: "Overlap", Message: "an earlier Job was running", Nominal: hour.Add(-2 * time.Hour), Count: 1})
			got := w.call("history", "hourly", "--nats-url="+s.url)
			for _, want := range []string{
				"hourly: 1000025 times since ", " #######x############.(1000000)#x.#+\n", "\n  # 21 complete  x 2 failed  + 1 active  . 1000001 skipped  (n) n times in a row\n",
				" 1 Started Complete 60s hourly-", " 1 Started Failed 60s hourly-", "BackoffLimitExceeded\n", " 1000000 Skipped (Suspended)\n", " 1 Started Waiting hourly-",
			} {
				if !strings.Contains(got.out, want) && !strings.Contains(squeezed(got.out), want) {
					t.Errorf("no %q", want)
				}
			}
			if got.code != 0 || got.err != "" || t.Failed() {
				t.Errorf("got %s", got)
			}
			if got := w.call("history", "hourly", "--nats-url="+s.url, "--failed", "-o", "jsonpath={range .items[*]}{.job.durationSeconds} {end}"); got.code != 0 || got.out != "60  " {
				t.Errorf("got %s", got)
			}
			t.Setenv("JOBSTREAM_NATS_URL", s.url)
			if got := w.call("history", "hourly", "--failed"); got.code != 0 || !strings.Contains(got.out, "hourly: 2 times since ") || got.err != "" {
				t.Errorf("from the environment: %s", got)
			}
		})
	}
}

// TestHistoryOfManyTimes: a schedule of every minute, among ten times as many events of others. The plugin receives one message for each
// verdict and one for each end, and none of others'.
func TestHistoryOfManyTimes(t *testing.T) {
	minutes, others := size.HistoryDays*24*60, 10
	s, w := newStream(t, cloudevent.Structured), newWorld(t)
	sj := w.newScheduled("minutely", nil)
	nc, err := nats.Connect(s.url, nats.Timeout(patience))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	encode := func(p events.Public) []byte {
		e, err := events.CloudEvent("default", p)
		if err != nil {
			t.Fatal(err)
		}
		_, data, err := cloudevent.Encode(e, cloudevent.Structured)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	begin := time.Now().UTC().AddDate(0, 0, -size.HistoryDays).Truncate(time.Minute)
	var foreign [][]byte // what is in events about others does not matter, and encoding takes time
	for _, p := range ran(events.Reference{Namespace: w.ns, Name: "other-0", UID: "other"}, begin, events.JobFailed) {
		foreign = append(foreign, encode(p))
	}
	var all []*nats.Msg
	add := func(p events.Public, data []byte) {
		all = append(all, &nats.Msg{Subject: events.PublicSubject("default", p), Header: nats.Header{"Content-Type": {"application/cloudevents+json"}}, Data: data})
	}
	for i := range minutes {
		minute := begin.Add(time.Duration(i) * time.Minute)
		for _, p := range ran(events.Reference{Namespace: w.ns, Name: sj.Name, UID: sj.UID}, minute, events.JobSucceeded) {
			add(p, encode(p))
		}
		for n := range others / 2 { // two events each
			for i, p := range ran(events.Reference{Namespace: w.ns, Name: fmt.Sprint("other-", n), UID: "other"}, minute, events.JobFailed) {
				add(p, foreign[i])
			}
		}
	}
	publishAll(t, nc, all)
	s.Close() // it asks for the state of its streams every few seconds
	received, began := answers(t, nc), time.Now()
	got := w.call("history", "minutely", "--nats-url="+s.url, "-o", "wide")
	n := received()
	t.Logf("history of %d times among %d events: %d messages received, %v", minutes, minutes*(others+2), n, time.Since(began).Round(10*time.Millisecond))
	if got.code != 0 || !strings.HasPrefix(got.out, fmt.Sprintf("minutely: %d times since ", minutes)) || !strings.Contains(got.out, fmt.Sprintf("  # %d complete\n", minutes)) {
		t.Errorf("%.300s", got)
	}
	if few := 100; n < 2*minutes || n > 2*minutes+few { // the few are about the stream
		t.Errorf("%d messages for %d events", n, 2*minutes)
	}
}

// answers counts the answers that the programs of the cluster receive to their requests, until its result is called.
func answers(t *testing.T, nc *nats.Conn) (received func() int) {
	t.Helper()
	var n atomic.Int64
	s, err := nc.Subscribe(">", func(m *nats.Msg) {
		if strings.HasPrefix(m.Subject, "_INBOX_jobstream_default") { // of whichever role
			n.Add(1)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.SetPendingLimits(-1, -1), nc.Flush()); err != nil {
		t.Fatal(err)
	}
	return func() int {
		t.Helper()
		if err := errors.Join(nc.Flush(), s.Drain()); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() string {
			if s.IsValid() {
				return "the last answers to arrive"
			}
			return ""
		})
		return int(n.Load())
	}
}

// publishAll publishes the messages to a stream. It waits for the acknowledgment of the first one, and then of one in a few thousand: so
// many fit into the server's queue.
func publishAll(t *testing.T, nc *nats.Conn, all []*nats.Msg) {
	t.Helper()
	var first uint64
	for i, m := range all {
		if i%4000 > 0 && i < len(all)-1 {
			if err := nc.PublishMsg(m); err != nil {
				t.Fatal(err)
			}
			continue
		}
		answer, err := nc.RequestMsg(m, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		var ack jetstream.PubAck
		if err := json.Unmarshal(answer.Data, &ack); err != nil || ack.Sequence == 0 {
			t.Fatalf("%v: %s", err, answer.Data)
		}
		if i == 0 {
			first = ack.Sequence
		}
		if stored := ack.Sequence - first; stored != uint64(i) {
			t.Fatalf("%d of %d events are stored", stored+1, i+1)
		}
	}
}

// TestHistoryOfADeletedScheduledJob: the stream outlives the object; of several with its name, the last one counts.
func TestHistoryOfADeletedScheduledJob(t *testing.T) {
	s, w := newStream(t, cloudevent.Structured), newWorld(t)
	w.schedules()
	hour := time.Date(2026, 11, 1, 2, 0, 0, 0, time.UTC)
	s.announce(ran(events.Reference{Namespace: w.ns, Name: "nightly", UID: "first"}, hour, events.JobFailed)...)
	s.announce(ran(events.Reference{Namespace: w.ns, Name: "nightly", UID: "second"}, hour.Add(24*time.Hour), events.JobSucceeded)...)
	got := w.call("history", "nightly", "--nats-url="+s.url)
	if got.code != 0 || !strings.Contains(got.out, "nightly: 1 time since 2026-11-02 02:00 (UTC)\n") || got.err != "note: the ScheduledJob nightly was deleted: this is what the stream of public events holds, in UTC\n" {
		t.Errorf("got %s", got)
	}
	if got := w.call("history", "weekly", "--nats-url="+s.url); got.code != ExitFailed || !strings.HasPrefix(got.err, "error: there is no ScheduledJob weekly in the namespace "+w.ns+", and the stream of public events holds none of that name: -n chooses another, --cluster-name another cluster\n") {
		t.Errorf("got %s", got)
	}
}

// TestHistoryWithGapsInTheStream: what cannot be read, and what has been deleted, is reported; the rest is shown.
func TestHistoryWithGapsInTheStream(t *testing.T) {
	w := newWorld(t)
	sj := w.withHistory(time.Now())
	created := sj.CreationTimestamp.Time
	eventually(t, func() string { // the stream is younger than the ScheduledJob
		if time.Now().Truncate(time.Second).After(created) {
			return ""
		}
		return "the next second"
	})
	s := newStream(t, cloudevent.Structured)
	of := events.Reference{Namespace: w.ns, Name: sj.Name, UID: sj.UID}
	s.announce(events.TickDecided{ScheduledJob: of, Verdict: "Postponed\x1b[2J", Nominal: time.Now(), Count: 1})
	nc, err := nats.Connect(s.url, nats.Timeout(patience))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for _, text := range []string{"no event", `{"specversion":"1.0","id":"1","source":"/s","type":"dev.jobstream.schedule.tick.v2","data":{}}`, `{"specversion":"1.0","id":"1","source":"/s","type":"dev.jobstream.schedule.tick.v1","data":{"count":"many"}}`} {
		if _, err := nc.Request(events.PublicSubject("default", events.TickDecided{ScheduledJob: of, Verdict: events.Started}), []byte(text), time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	got := w.call("history", "hourly", "--nats-url="+s.url)
	if got.code != 0 || !strings.Contains(got.out, "hourly: 6 times since ") || !strings.Contains(got.out, " Postponed?[2J\n") || !strings.HasPrefix(got.err, "warning: 3 events cannot be read: a newer version of jobstream, or another program, has written them\n") ||
		!strings.Contains(got.err, "\nnote: the stream of public events begins at ") {
		t.Errorf("got %s", got)
	}
}

// TestHistoryWithoutTheBus: each way in which the stream cannot be read has an error with a remedy, and no table that is not true.
func TestHistoryWithoutTheBus(t *testing.T) {
	w := newWorld(t)
	w.withHistory(time.Now())
	guarded := guardedNATS(t)
	connectStream(t, guarded("operator"), cloudevent.Structured)
	open := newStream(t, cloudevent.Structured)
	secret := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, args string
		code       int
		says       string
	}{
		{"no server", "--nats-url=nats://127.0.0.1:1 --nats-connect-timeout=300ms", ExitFailed, "error: cannot ask the bus: bus: NATS at nats://127.0.0.1:1 cannot be reached: "},
		{"a user who may not read events", "--nats-url=" + guarded("trigger"), ExitFailed, "the server does not let this program's user "},
		{"no credentials", "--nats-url=" + guarded(""), ExitFailed, "the server requires authentication: give --nats-user-file and --nats-password-file"},
		{"wrong credentials", "--nats-url=" + guarded("") + " --nats-token-file=" + secret, ExitFailed, "check --nats-token-file"},
		{"another cluster", "--nats-url=" + open.url + " --cluster-name=other", ExitFailed, "there is no stream jobstream_other_events"},
		{"half of the credentials", "--nats-url=" + open.url + " --nats-user-file=" + secret, ExitUsage, "--nats-user-file and --nats-password-file need each other: give both"},
		{"a time in the future", "--since=-5m", ExitUsage, "--since=-5m0s lies in the future: write how long ago, such as 24h"},
		{"names of times", "-o name", ExitUsage, "--output=name is none: write one of wide, json, yaml, "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := w.call(append([]string{"history", "hourly"}, strings.Fields(tt.args)...)...)
			if got.code != tt.code || got.out != "" || !strings.Contains(got.err, tt.says) || tt.code == ExitFailed && !strings.HasSuffix(got.err, "; without --nats-url, history shows the last ten verdicts\n") || strings.Contains(got.err, "s3cret") {
				t.Errorf("want %q, got %s", tt.says, got)
			}
		})
	}
	// The account of a reader suffices.
	if got := w.call("history", "hourly", "--nats-url="+guarded("reader")); got.code != 0 || !strings.Contains(got.out, "hourly: 5 times since ") {
		t.Errorf("got %s", got)
	}
}

// guardedNATS starts a server with deploy/nats/accounts.conf, and returns the URLs of its users; that of "" has no user.
func guardedNATS(t *testing.T) (as func(user string) string) {
	t.Helper()
	accounts, err := os.ReadFile("../../deploy/nats/accounts.conf")
	if err != nil {
		t.Fatal(err)
	}
	dir, passwords := t.TempDir(), ""
	for _, user := range []string{"TRIGGER", "RECONCILER", "OPERATOR", "READER", "AUDIT"} {
		passwords += user + "_PASSWORD: s3cret\n"
	}
	for file, text := range map[string]string{"accounts.conf": string(accounts), "users.conf": passwords,
		"nats.conf": fmt.Sprintf("max_payload: 8MB\njetstream { store_dir: %q }\ninclude accounts.conf\n", dir)} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o, err := server.ProcessConfigFile(filepath.Join(dir, "nats.conf"))
	if err != nil {
		t.Fatal(err)
	}
	o.Host, o.Port, o.NoSigs, o.NoLog = "127.0.0.1", server.RANDOM_PORT, true, true
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("the NATS server does not serve")
	}
	return func(user string) string {
		if user == "" {
			return s.ClientURL()
		}
		return strings.Replace(s.ClientURL(), "nats://", "nats://"+user+":s3cret@", 1)
	}
}
