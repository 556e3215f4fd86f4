package bus

import (
	"log/slog"
	"sync"
	"time"
)

// quietFor is how long a repeated message is suppressed: a bus that is down for an hour causes hundreds of lines instead of
// hundreds of thousands.
const quietFor = 10 * time.Second

// throttledLog is a log for what may happen thousands of times a second. It writes the first occurrence of each message at once,
// and then at most one line per quietFor with the number of suppressed ones.
type throttledLog struct {
	log  *slog.Logger
	mu   sync.Mutex
	seen map[string]*repeated
}

type repeated struct {
	last  time.Time
	quiet int
}

func newThrottledLog(log *slog.Logger) *throttledLog {
	return &throttledLog{log: log, seen: map[string]*repeated{}}
}

// warn takes a constant message; variable parts belong into args.
func (l *throttledLog) warn(msg string, args ...any) {
	l.mu.Lock()
	e := l.seen[msg]
	if e == nil {
		e = &repeated{}
		l.seen[msg] = e
	}
	now := time.Now()
	if now.Sub(e.last) < quietFor {
		e.quiet++
		l.mu.Unlock()
		return
	}
	swallowed := e.quiet
	e.last, e.quiet = now, 0
	l.mu.Unlock()
	if swallowed > 0 {
		args = append(args, "swallowed", swallowed)
	}
	l.log.Warn(msg, args...)
}
