package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
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

// Of a state that is dropped the reason is logged, once what remains has been saved.
func TestAStateThatIsDroppedIsLogged(t *testing.T) {
	for _, c := range []struct {
		name            string
		most, conflicts int
		lines           int
	}{
		{"it fits", 0, 0, 0},
		{"it does not fit", 150, 0, 1},
		{"it does not fit, and another reconciler was faster", 150, 1, 1},
		{"it fits, and another reconciler was faster", 0, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log logbook
			synctest.Test(t, func(t *testing.T) {
				b := start(t, hoarder(false), into(&log))
				b.most, b.conflicts = c.most, c.conflicts
				b.Deliver(fact{b, strings.Repeat("x", 200)})
				synctest.Wait()
			})
			const line = "WARN the state is too large to be saved, or not valid: forgotten; inventory follows, later and later as long as it does not fit"
			if n := log.count(line); n != c.lines {
				t.Errorf("logged %d times, want %d: %q", n, c.lines, log.lines)
			}
		})
	}
}

// A quarantined fact is logged, and so is a state that cannot be deleted with it.
func TestAQuarantineIsLogged(t *testing.T) {
	for name, err := range map[string]error{"the state is deleted": nil, "it cannot be deleted": errors.New("the bus is away")} {
		t.Run(name, func(t *testing.T) {
			var log logbook
			synctest.Test(t, func(t *testing.T) {
				b := start(t, counter(), into(&log), failNth("forget", 1, err))
				b.Deliver(fact{b, "poison"})
				synctest.Wait()
			})
			want := []string{"ERROR fact quarantined and state forgotten; inventory follows"}
			if err != nil {
				want = append(want, "ERROR the state cannot be deleted")
			}
			if !slices.Equal(log.lines, want) {
				t.Errorf("got  %q\nwant %q", log.lines, want)
			}
		})
	}
}
