package processnode

import "time"

// stopOrder is the node's own reason to end a Pod: its deletion, or its deadline. The zero value is none.
type stopOrder struct {
	at      time.Time
	grace   time.Duration
	reason  string // of the Pod's status, where the Pod fails because of it
	message string
}

func (s stopOrder) given() bool { return !s.at.IsZero() }

// steps are the next actions, as indexes of containers. Only one kind is given at a time.
type steps struct {
	start []int
	term  []int
	kill  []int
	// done reports that no container runs and none will: the Pod has ended.
	done bool
	// wake is when to decide again if nothing happens before; zero: never.
	wake time.Time
}

func (s steps) any() bool { return len(s.start)+len(s.term)+len(s.kill) > 0 }

// decide returns the next steps for the containers of a Pod. It depends only on its arguments. After the steps are
// done it is asked again, until there are none.
//
//	init 1 -> init 2 -> ... -> mains, side by side -> end
//	            sidecars run from their place in the row until the mains have ended,
//	            and end in reverse order
func decide(cs []container, stop stopOrder, grace time.Duration, now time.Time) steps {
	if stop.given() {
		return shutDown(cs, stop.at.Add(stop.grace), now)
	}
	if since, over := ended(cs); over {
		return shutDown(cs, since.Add(grace), now)
	}
	return advance(cs, now)
}

// ended reports whether the work is over: an init container has failed for good, or every main container has ended for good.
// since is when that happened: the sidecars' grace period counts from there.
func ended(cs []container) (since time.Time, over bool) {
	mains, left := 0, 0
	for i := range cs {
		c := &cs[i]
		switch c.role {
		case initRole:
			if c.failed() {
				return c.exit.finished, true
			}
		case mainRole:
			mains++
			if c.stage != exited || c.again {
				left++
				continue
			}
			if c.exit.finished.After(since) {
				since = c.exit.finished
			}
		}
	}
	return since, mains > 0 && left == 0
}

// shutDown ends running containers: mains and init containers at once, each sidecar when everything after it has ended, and all
// of them by force at the deadline.
func shutDown(cs []container, deadline, now time.Time) steps {
	var s steps
	alive := false
	force := !now.Before(deadline)
	for i := len(cs) - 1; i >= 0; i-- {
		c := &cs[i]
		if c.stage != running {
			continue
		}
		switch {
		case force && c.signalled < killed:
			s.kill = append(s.kill, i)
		case !force && c.signalled < termed && (c.role != sidecarRole || !alive):
			s.term = append(s.term, i)
		}
		alive = true
	}
	s.done = !alive
	if alive && !force {
		s.wake = deadline
	}
	return s
}

// advance starts what is due: sidecars that have crashed, the next init container, or the mains.
func advance(cs []container, now time.Time) steps {
	var s steps
	for i := range cs {
		c := &cs[i]
		if c.role == mainRole {
			continue
		}
		if c.role == sidecarRole {
			s.startIfDue(c, i, now)
			if !c.everStarted() {
				return s // later containers may depend on it
			}
			continue
		}
		if !c.succeeded() {
			s.startIfDue(c, i, now)
			return s
		}
	}
	for i := range cs {
		if cs[i].role == mainRole {
			s.startIfDue(&cs[i], i, now)
		}
	}
	return s
}

// startIfDue adds a container that waits or is to be restarted: to the starts, or to the time to wake up.
func (s *steps) startIfDue(c *container, i int, now time.Time) {
	if c.stage == running || c.stage == exited && !c.again {
		return
	}
	if c.due.After(now) {
		if s.wake.IsZero() || c.due.Before(s.wake) {
			s.wake = c.due
		}
		return
	}
	s.start = append(s.start, i)
}
