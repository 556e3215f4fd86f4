package bus

import (
	"log/slog"
	"sync"
	"time"
)

// quietFor is how long a repeated complaint stays silent: a bus that is down for an hour writes hundreds of lines and
// not hundreds of thousands.
const quietFor = 10 * time.Second

// complaints is a log for what may happen thousands of times a second: of each message, the first is written at once
// and then at most one line per quietFor, which says how many were swallowed in between.
type complaints struct {
	log  *slog.Logger
	mu   sync.Mutex
	seen map[string]*complaint
}

type complaint struct {
	last  time.Time
	quiet int
}

func newComplaints(log *slog.Logger) *complaints {
	return &complaints{log: log, seen: map[string]*complaint{}}
}

// warn takes a constant message; whatever varies belongs into args.
func (c *complaints) warn(msg string, args ...any) {
	c.mu.Lock()
	e := c.seen[msg]
	if e == nil {
		e = &complaint{}
		c.seen[msg] = e
	}
	now := time.Now()
	if now.Sub(e.last) < quietFor {
		e.quiet++
		c.mu.Unlock()
		return
	}
	swallowed := e.quiet
	e.last, e.quiet = now, 0
	c.mu.Unlock()
	if swallowed > 0 {
		args = append(args, "swallowed", swallowed)
	}
	c.log.Warn(msg, args...)
}
