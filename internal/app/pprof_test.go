package app

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/jobstream/jobstream/internal/app/apptest"
)

// Profiles need no credentials, so nothing serves them unless an operator asks for it.
func TestNoProfilesUnlessAsked(t *testing.T) {
	for program, o := range map[string]Options{"trigger": TriggerDefaults().Options, "reconciler": ReconcilerDefaults().Options, "jobstream": AllInOneDefaults().Options} {
		if listens(o.PprofAddress) {
			t.Errorf("%s serves profiles on %s", program, o.PprofAddress)
		}
	}
	s := &service{log: slog.New(slog.DiscardHandler), probes: &Probes{}, metrics: newMetrics()}
	defer s.close(t.Context())
	if err := s.openPorts(t.Context(), Options{MetricsAddress: apptest.FreeAddress(t)}); err != nil {
		t.Fatal(err)
	}
	if code, _ := get(t, s.metrics.handler(), "/debug/pprof/"); code != http.StatusNotFound {
		t.Errorf("profiles among the metrics: %d", code)
	}
	if code, _ := get(t, s.probes.handler(), "/debug/pprof/"); code != http.StatusNotFound {
		t.Errorf("profiles among the probes: %d", code)
	}
}

func TestProfiles(t *testing.T) {
	f, c := flagSet()
	address := apptest.FreeAddress(t)
	if err := errors.Join(f.Parse([]string{"--pprof-bind-address=" + address}), c.complete()); err != nil {
		t.Fatal(err)
	}
	s := &service{log: slog.New(slog.DiscardHandler), probes: &Probes{}, metrics: newMetrics()}
	defer s.close(t.Context())
	if err := s.openPorts(t.Context(), Options{PprofAddress: c.PprofAddress}); err != nil {
		t.Fatal(err)
	}
	if page := fetch(t, "http://"+address+"/debug/pprof/goroutine?debug=1"); !strings.Contains(page, "goroutine profile: total") {
		t.Errorf("goroutines: %s", page)
	}
	if page := fetch(t, "http://"+address+"/debug/pprof/profile?seconds=1"); !strings.HasPrefix(page, "\x1f\x8b") {
		t.Errorf("a profile of the processors is no gzip file: %.40q", page)
	}
	if code, _ := get(t, pprofHandler(), "/debug/pprof/cmdline"); code != http.StatusNotFound {
		t.Errorf("the command line may hold a password, and is served: %d", code)
	}
}
