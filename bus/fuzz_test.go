package bus

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Any client with permission for it may write into the quarantine: what stands there is shown, and never understood as another
// message.
func FuzzQuarantined(f *testing.F) {
	f.Add("facts.eu.job.shop.uid-1.JobObserved", "jobstream_eu_facts", "17", "it panicked", "2026-01-01T00:00:00Z", "9000000", []byte("{}"))
	f.Add("facts", "", "-1", "\n", "yesterday", "-5", []byte(nil))
	f.Add("", "x", "18446744073709551616", "", "0001-01-01T00:00:00Z", "1e9", []byte("x"))
	f.Fuzz(func(t *testing.T, subject, stream, sequence, reason, at, truncated string, data []byte) {
		stored := time.Unix(1_800_000_000, 0)
		q := quarantinedMessage(&jetstream.RawStreamMsg{Sequence: 3, Time: stored, Data: data, Header: nats.Header{headerSubject: {subject},
			headerStream: {stream}, headerSequence: {sequence}, headerReason: {reason}, headerTime: {at}, headerTruncated: {truncated}}})
		if q.ID != 3 || q.Size != len(data) || q.Time.IsZero() {
			t.Errorf("%+v", q)
		}
		if q.Truncated != 0 && q.Truncated <= q.Size {
			t.Errorf("%d of %d bytes are kept", q.Size, q.Truncated)
		}
	})
}
