package app

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/app/apptest"
)

// lateTimers remembers what was set.
type lateTimers struct{ at time.Time }

func (l *lateTimers) Set(_ context.Context, _ events.Key, _ string, at time.Time) error {
	l.at = at
	return nil
}

// TestTimersOfAProgramWhoseClockIsAhead: the bus fires by a clock of its own.
func TestTimersOfAProgramWhoseClockIsAhead(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for offset, want := range map[time.Duration]time.Time{0: noon, time.Hour: noon.Add(-time.Hour), -time.Hour: noon.Add(time.Hour)} {
		bus := &lateTimers{}
		o := Options{ClockOffset: offset}
		if err := o.timers(bus).Set(t.Context(), events.Key{}, "x", noon); err != nil || !bus.at.Equal(want) {
			t.Errorf("%v ahead: the bus fires at %v, want %v: %v", offset, bus.at, want, err)
		}
		if shown := o.now(); time.Until(shown.Add(-offset)).Abs() > soon {
			t.Errorf("%v ahead: the clock shows %v", offset, shown)
		}
	}
}

func TestClockOffsetIsForTestsOnly(t *testing.T) {
	c, options := &cobra.Command{Use: "x", Run: func(*cobra.Command, []string) {}}, Options{}
	options.add(c.Flags())
	prepare(c)
	var out bytes.Buffer
	c.SetOut(&out)
	if err := c.Help(); err != nil || strings.Contains(out.String(), "clock") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if err := c.Flags().Parse([]string{"--clock-offset=-1h"}); err != nil || options.ClockOffset != -time.Hour {
		t.Errorf("%v, %v", options.ClockOffset, err)
	}
	if err := takeEnv(pflagsOf(&options), env("JOBSTREAM_CLOCK_OFFSET", "90s")); err != nil || options.ClockOffset != 90*time.Second {
		t.Errorf("%v, %v", options.ClockOffset, err)
	}
}

func pflagsOf(o *Options) *pflag.FlagSet {
	f := pflag.NewFlagSet("x", pflag.ContinueOnError)
	o.add(f)
	return f
}

// TestTriggerRings: a ScheduledJob that is due in half a day is due now for a trigger whose clock is a day ahead.
func TestTriggerRings(t *testing.T) {
	api := apptest.Start(t)
	at := metav1.NewTime(time.Now().Add(12 * time.Hour))
	list := v1alpha1.ScheduledJobList{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ScheduledJobList"}, ListMeta: metav1.ListMeta{ResourceVersion: "7"},
		Items: []v1alpha1.ScheduledJob{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "later", UID: "3d5e3eb4-0001-4001-8001-000000000001", ResourceVersion: "5", CreationTimestamp: metav1.Now()},
			Spec:       v1alpha1.ScheduledJobSpec{RunAt: &at},
		}},
	}
	api.HandleFunc("GET /apis/jobstream.dev/v1alpha1/scheduledjobs", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			apptest.Answer(w, list)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	c := TriggerDefaults()
	c.Options = options(t, api)
	c.MetricsAddress, c.ClockOffset = apptest.FreeAddress(t), 24*time.Hour
	stop, ended := run(t, func(ctx context.Context) error { return RunTrigger(ctx, c) })
	awaitReady(t, c.Probes, ended)
	awaitMetric(t, c.MetricsAddress, `jobstream_facts_published_total{function="scheduledjob",type="ScheduleListed"} 1`)
	awaitMetric(t, c.MetricsAddress, `jobstream_facts_published_total{function="scheduledjob",type="ScheduleDue"} 1`)
	stop()
	awaitEnd(t, ended)
}
