package alarm

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/jobstream/jobstream/events"
)

const many = 50_000

// crowd returns that many ScheduledJobs, each with strings of its own as from a decoder.
func crowd(zones ...string) []events.ScheduledJob {
	out := make([]events.ScheduledJob, many)
	for i := range out {
		out[i] = job(types.UID(strings.Clone(string(uuid.NewUUID()))), fmt.Sprintf("%d %d * * *", i%60, i/60%24), decidedUntil("12:00:00"), in(zones[i%len(zones)]))
		out[i].Namespace = fmt.Sprintf("team-%d", i%500)
	}
	return out
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkMemory reports the memory of an idle ScheduledJob.
func BenchmarkMemory(b *testing.B) {
	for _, c := range []struct {
		name  string
		zones []string
	}{{"UTC", []string{""}}, {"four zones", []string{"", "Europe/Berlin", "America/New_York", "Asia/Kolkata"}}} {
		b.Run(c.name, func(b *testing.B) {
			known := map[string]*time.Location{}
			find := func(name string) (*time.Location, error) {
				if known[name] == nil {
					zone, err := time.LoadLocation(name)
					if err != nil {
						return nil, err
					}
					known[name] = zone
				}
				return known[name], nil
			}
			for b.Loop() {
				before := heapInUse()
				a, err := New(Config{Cluster: "c", Sink: &memory{}, Zones: find, Now: func() time.Time { return at("12:00:30") }})
				if err != nil {
					b.Fatal(err)
				}
				began := time.Now()
				for _, j := range crowd(c.zones...) { // garbage but for what the alarm keeps
					a.Saw(j)
				}
				b.ReportMetric(float64(time.Since(began).Microseconds())/many, "µs/first-observation")
				b.ReportMetric(float64(heapInUse()-before)/many, "B/schedule")
				runtime.KeepAlive(a)
			}
		})
	}
}

// BenchmarkLook measures a look at the clock while nothing is due, and BenchmarkSetBack one after the clock was set back.
func BenchmarkLook(b *testing.B) {
	now := at("12:00:30")
	a, err := New(Config{Cluster: "c", Sink: &memory{}, Now: func() time.Time { return now }})
	if err != nil {
		b.Fatal(err)
	}
	for _, j := range crowd("") {
		a.Saw(j)
	}
	b.Run("idle", func(b *testing.B) {
		for b.Loop() {
			a.look()
		}
	})
	b.Run("set back", func(b *testing.B) {
		for b.Loop() {
			a.last = now.Add(time.Hour)
			a.look()
		}
	})
}
