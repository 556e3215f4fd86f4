package harness

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

const (
	// pollEvery is how often a condition is checked that is about to become true.
	pollEvery = 50 * time.Millisecond
	// pollRarely is how often a condition is checked that has taken ten times as long: otherwise a dozen tests that wait for a
	// backoff would keep the API server busy.
	pollRarely = 200 * time.Millisecond
	// timeoutFactor is how many times as long as a test says its conditions, and ends of programs, are waited for. A test names what a quiet
	// machine needs at most; a dozen of them may share two slow processors. Only a failure takes longer by that.
	timeoutFactor = 3
)

// Hopeless is an error that waiting does not cure.
type Hopeless struct{ error }

// Unwrap returns the reason.
func (h Hopeless) Unwrap() error { return h.error }

// Poll calls check until it returns no error, the error is Hopeless, or ctx ends; then it returns the last error. Between two calls it
// waits three times as long as the first one took, up to a second, and a moment: what runs a command costs other tests their time.
func Poll(ctx context.Context, check func(context.Context) error) error {
	began, last := time.Now(), errors.New("never asked")
	again := time.NewTimer(pollEvery)
	defer again.Stop()
	for {
		asked := time.Now()
		err := check(ctx)
		took := time.Since(asked)
		if hopeless := (Hopeless{}); err == nil || errors.As(err, &hopeless) {
			return err
		}
		if ctx.Err() == nil {
			last = err // after the end every check fails, for that reason alone
		}
		again.Reset(min(max(pollEvery, time.Since(began)/10), pollRarely) + min(3*took, time.Second))
		select {
		case <-again.C:
		case <-ctx.Done():
			return last
		}
	}
}

// Until polls until check returns no error, and fails the test with the last error after three times the time.
func Until(t testing.TB, within time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeoutFactor*within)
	defer cancel()
	began := time.Now()
	if err := Poll(ctx, check); err != nil {
		t.Fatalf("%s: after %v: %v", what, time.Since(began).Round(time.Millisecond), err)
	}
}

// Holds polls for the whole time, and fails the test as soon as check returns an error: for what must not happen.
func Holds(t testing.TB, during time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	over := time.NewTimer(during)
	defer over.Stop()
	again := time.NewTicker(pollEvery)
	defer again.Stop()
	for {
		if err := check(t.Context()); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		select {
		case <-again.C:
		case <-over.C:
			return
		}
	}
}

// Pass waits for a moment that a test is about, such as "restarted five seconds later". It must not be used to wait for a
// condition.
func Pass(t testing.TB, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
		t.Fatal(fmt.Errorf("the test ended: %w", t.Context().Err()))
	}
}

// Stop makes the error one that waiting does not cure.
func Stop(err error) error { return Hopeless{err} }
