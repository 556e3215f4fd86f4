package harness

import (
	"context"
	"fmt"
	"regexp"
	"time"
)

var (
	healthAddress  = regexp.MustCompile(`what=health-bind-address address=(\S+)`)
	pprofAddress   = regexp.MustCompile(`what=pprof-bind-address address=(\S+)`)
	metricsAddress = regexp.MustCompile(`what=metrics-bind-address address=(\S+)`)
)

// Ready waits until the program reports that it is ready.
func Ready(ctx context.Context, p *Process) error {
	return Poll(ctx, func(ctx context.Context) error {
		if !p.Running() {
			return Hopeless{fmt.Errorf("%s ended:\n%s", p.Name, Tail(p.Printed(), 10))}
		}
		return Readiness(ctx, p)
	})
}

// Readiness returns nil if the program is ready, and otherwise its own error text.
func Readiness(ctx context.Context, p *Process) error {
	address, err := p.Await(ctx, healthAddress)
	if err != nil {
		return err
	}
	_, err = get(ctx, "http://"+address+"/readyz")
	return err
}

// Metrics returns what the program serves at /metrics.
func Metrics(ctx context.Context, p *Process) (string, error) { return page(ctx, p, "/metrics") }

// SchedulePage returns what a trigger serves at /metrics/scheduledjobs.
func SchedulePage(ctx context.Context, p *Process) (string, error) {
	return page(ctx, p, "/metrics/scheduledjobs")
}

// Profile returns what the program's processors do for so long, for "go tool pprof". Its flag --pprof-bind-address, of natsd -pprof, must
// be set.
func Profile(ctx context.Context, p *Process, d time.Duration) ([]byte, error) {
	address, err := p.Await(ctx, pprofAddress)
	if err != nil {
		return nil, err
	}
	text, err := get(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", address, int(d.Seconds())))
	return []byte(text), err
}

func page(ctx context.Context, p *Process, path string) (string, error) {
	address, err := p.Await(ctx, metricsAddress)
	if err != nil {
		return "", err
	}
	return get(ctx, "http://"+address+path)
}
