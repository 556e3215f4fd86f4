package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/internal/engine"
)

// What fails is logged, and nothing else. At shutdown everything that is under way fails: that is not worth a line.
func TestWhatFailsIsLoggedExceptAtShutdown(t *testing.T) {
	away := errors.New("the server is away")
	for _, c := range []struct {
		name, line string
		function   fn.Registered
		fails      func(c *engine.Config, fail func(context.Context) error)
	}{
		{"an announcement", "WARN an announcement was not confirmed and will be repeated", herald(), func(c *engine.Config, fail func(context.Context) error) {
			c.Announcer.(*bench).hang = fail
		}},
		{"an effect", "WARN effects failed and will be repeated", counter(), func(c *engine.Config, fail func(context.Context) error) {
			c.Actor = engine.ActorFunc(func(ctx context.Context, _ events.Key, _ effect.Effect) ([]events.Event, error) {
				return nil, fail(ctx)
			})
		}},
		{"the bus", "WARN turn put back", counter(), func(c *engine.Config, fail func(context.Context) error) {
			broken(func(ctx context.Context, _ string) error { return fail(ctx) })(c)
		}},
	} {
		for _, way := range []struct {
			name  string
			fail  func(context.Context) error
			lines int
		}{
			{"fails", func(context.Context) error { return away }, 1},
			{"fails at shutdown", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, 0},
			{"works", nil, 0},
		} {
			t.Run(c.name+" "+way.name, func(t *testing.T) {
				var log logbook
				synctest.Test(t, func(t *testing.T) {
					b := start(t, c.function, into(&log), func(config *engine.Config) {
						if way.fail != nil {
							c.fails(config, way.fail)
						}
					})
					b.act = gone
					b.Deliver(fact{b, "a"})
					<-time.After(500 * time.Millisecond) // before anything is repeated
				})
				if n := log.count(c.line); n != way.lines {
					t.Errorf("logged %d times, want %d: %q", n, way.lines, log.lines)
				}
			})
		}
	}
}

// A state in doubt that cannot be deleted is logged as such.
func TestAStateThatCannotBeDeletedIsLogged(t *testing.T) {
	for name, err := range map[string]error{"it can": nil, "it cannot": errors.New("the bus is away")} {
		t.Run(name, func(t *testing.T) {
			var log logbook
			synctest.Test(t, func(t *testing.T) {
				b := start(t, counter(), into(&log), failNth("forget", 1, err))
				b.act = inVain()
				b.Deliver(fact{b, "a"})
				<-time.After(3 * time.Minute)
			})
			failed := 0
			if err != nil {
				failed = 1
			}
			const doubt = "ERROR the state does not converge with the cluster: forgotten; inventory follows"
			if log.count(doubt) != 1 || log.count("ERROR the state cannot be deleted") != failed {
				t.Errorf("got %q", log.lines)
			}
		})
	}
}
