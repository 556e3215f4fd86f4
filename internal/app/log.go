package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
)

// LogOptions configure the log.
type LogOptions struct {
	// Level is debug, info, warn or error; Format is text or json.
	Level, Format string
}

// LogDefaults log what is worth knowing, for people.
func LogDefaults() LogOptions { return LogOptions{Level: "info", Format: "text"} }

// Add defines the flags, with what the options hold as defaults.
func (o *LogOptions) Add(f *pflag.FlagSet) {
	f.StringVar(&o.Level, "log-level", o.Level, "`level` from which on to log: debug (every turn and its effects), info, warn or error")
	f.StringVar(&o.Format, "log-format", o.Format, "`format` of the log: text or json")
}

// Logger returns the program's logger, and from then on client-go logs through it, too. Repeated warnings and errors are limited:
// see limiter.
func (o LogOptions) Logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.Level)); err != nil {
		return nil, Usage{fmt.Errorf("--log-level %q is none: use debug, info, warn or error", o.Level)}
	}
	var h slog.Handler
	switch options := (&slog.HandlerOptions{Level: level}); strings.ToLower(o.Format) {
	case "text":
		h = slog.NewTextHandler(w, options)
	case "json":
		h = slog.NewJSONHandler(w, options)
	default:
		return nil, Usage{fmt.Errorf("--log-format %q is none: use text or json", o.Format)}
	}
	log := slog.New(limiter{h, &floods{now: time.Now, seen: map[string]*flood{}}})
	clientGo.Store(Quiet(log).With("component", "client-go"))
	return log, nil
}

// Quiet is the logger without its debug level, for verbose libraries.
func Quiet(log *slog.Logger) *slog.Logger { return slog.New(quiet{log.Handler()}) }

type quiet struct{ slog.Handler }

// Enabled implements slog.Handler.
func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo && q.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (q quiet) WithAttrs(a []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(a)} }

// WithGroup implements slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }

const (
	// floodWindow and floodBurst limit how often one message is written: often enough to see the Jobs concerned, while an API server
	// that is unreachable for an hour does not fill a disk.
	floodWindow = 10 * time.Second
	floodBurst  = 10
	// floodMessages bounds the memory: client-go puts what varies into its messages.
	floodMessages = 1000
)

// limiter is a slog.Handler that limits repeated messages: at most floodBurst of one message within floodWindow, whatever its
// attributes; the next line after that has the number of suppressed ones. It never limits the info level.
type limiter struct {
	slog.Handler
	floods *floods
}

// floods counts. It is shared by all loggers that were derived from one.
type floods struct {
	now  func() time.Time
	mu   sync.Mutex
	seen map[string]*flood
}

type flood struct {
	since     time.Time
	passed    int
	swallowed int
}

// Handle implements slog.Handler.
func (l limiter) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return l.Handler.Handle(ctx, r)
	}
	swallowed, passes := l.floods.count(r.Message)
	if !passes {
		return nil
	}
	if swallowed > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("swallowed", swallowed))
	}
	return l.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (l limiter) WithAttrs(a []slog.Attr) slog.Handler {
	return limiter{l.Handler.WithAttrs(a), l.floods}
}

// WithGroup implements slog.Handler.
func (l limiter) WithGroup(name string) slog.Handler {
	return limiter{l.Handler.WithGroup(name), l.floods}
}

// count reports whether a message passes, and how many like it were suppressed since the last that passed.
func (f *floods) count(message string) (swallowed int, passes bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	s := f.seen[message]
	if s == nil {
		if len(f.seen) >= floodMessages {
			clear(f.seen)
		}
		s = &flood{since: now}
		f.seen[message] = s
	}
	if now.Sub(s.since) >= floodWindow {
		swallowed = s.swallowed
		*s = flood{since: now}
	}
	if s.passed >= floodBurst {
		s.swallowed++
		return 0, false
	}
	s.passed++
	return swallowed, true
}
