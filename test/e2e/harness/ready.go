package harness

import (
	"context"
	"fmt"
	"regexp"
)

var (
	healthAddress  = regexp.MustCompile(`what=health-bind-address address=(\S+)`)
	metricsAddress = regexp.MustCompile(`what=metrics-bind-address address=(\S+)`)
)

// Ready waits until the program says that it is ready.
func Ready(ctx context.Context, p *Process) error {
	return Poll(ctx, func(ctx context.Context) error {
		if !p.Running() {
			return Hopeless{fmt.Errorf("%s ended:\n%s", p.Name, Tail(p.Printed(), 10))}
		}
		return Readiness(ctx, p)
	})
}

// Readiness is nil where the program is ready, and else says in the program's words why not.
func Readiness(ctx context.Context, p *Process) error {
	address, err := p.Await(ctx, healthAddress)
	if err != nil {
		return err
	}
	_, err = get(ctx, "http://"+address+"/readyz")
	return err
}

// Metrics are what the program serves at /metrics.
func Metrics(ctx context.Context, p *Process) (string, error) {
	address, err := p.Await(ctx, metricsAddress)
	if err != nil {
		return "", err
	}
	return get(ctx, "http://"+address+"/metrics")
}
