package partition

import (
	"encoding/json"
	"testing"
)

// Whoever may publish heartbeats, no heartbeat makes a member panic, or serve a partition that another one holds.
func FuzzHeartbeats(f *testing.F) {
	for _, text := range []string{
		`{"member":"b","versions":{"job":1},"holds":{"job":3},"serves":true,"serial":1,"tick":1}`,
		`{"member":"a","versions":{"job":1},"serves":true,"serial":18446744073709551615,"tick":9223372036854775807}`,
		`{"member":"","versions":null,"holds":null,"tick":-9223372036854775808,"gone":true}`,
		`{"member":"c","versions":{"job":-1},"holds":{"job":4294967295},"serves":true,"unfit":true}`,
	} {
		f.Add([]byte(text), []byte(text))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		table := NewTable("a")
		for tick := range 4 {
			own := Heartbeat{Member: "a", Versions: map[string]int{"job": 1}, Serves: true, Serial: uint64(tick), Tick: tick}
			table.Receive(own)
			for _, data := range [][]byte{first, second} {
				var h Heartbeat
				if json.Unmarshal(data, &h) == nil && h.Member != "" {
					table.Receive(h)
				}
			}
			held := table.heldByOthers("job")
			mine, free := table.Share("job", own)
			if both := mine & free & held; both != 0 && table.Ticks() < HandoverTicks {
				t.Fatalf("%s and %s: at tick %d the member begins to serve %v, which others hold", first, second, table.Ticks(), both)
			}
			table.Live()
			table.Newest("job", 1)
		}
	})
}
