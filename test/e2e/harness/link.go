package harness

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Link is a TCP connection from one part to another that can be cut and slowed. A part that is given the address of a Link does
// not know the one behind it.
type Link struct {
	// From and To are the names of the parts.
	From, To string

	listener net.Listener
	upstream string
	all      sync.WaitGroup

	mu      sync.Mutex
	change  *sync.Cond // of what follows
	cut     bool
	closed  bool
	delay   time.Duration
	open    map[net.Conn]bool
	carried int64
}

// NewLink opens a link to the address.
func NewLink(from, to, upstream string) (*Link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("link from %s to %s: %w", from, to, err)
	}
	l := &Link{From: from, To: to, listener: listener, upstream: upstream, open: map[net.Conn]bool{}}
	l.change = sync.NewCond(&l.mu)
	l.all.Go(l.accept)
	return l, nil
}

// Address is where clients of the link connect.
func (l *Link) Address() string { return l.listener.Addr().String() }

// Cut holds everything back, both ways, without an error, like a pulled cable. What was sent arrives after Heal, unless one side
// has closed the connection.
func (l *Link) Cut() { l.set(true, 0) }

// Slow delays every piece of data by so long, both ways.
func (l *Link) Slow(delay time.Duration) { l.set(false, delay) }

// Heal ends Cut and Slow.
func (l *Link) Heal() { l.set(false, 0) }

func (l *Link) set(cut bool, delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut, l.delay = cut, delay
	l.change.Broadcast()
}

// Carried returns how many bytes have passed.
func (l *Link) Carried() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.carried
}

// Close ends all connections.
func (l *Link) Close() error {
	l.mu.Lock()
	l.closed = true
	for c := range l.open {
		_ = c.Close()
	}
	l.change.Broadcast()
	l.mu.Unlock()
	err := l.listener.Close()
	l.all.Wait()
	return err
}

func (l *Link) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		l.all.Go(func() { l.serve(near) })
	}
}

func (l *Link) serve(near net.Conn) {
	defer near.Close()
	if !l.keep(near) {
		return
	}
	defer l.forget(near)
	if !l.pass(0) {
		return
	}
	far, err := net.Dial("tcp", l.upstream)
	if err != nil {
		return
	}
	defer far.Close()
	if !l.keep(far) {
		return
	}
	defer l.forget(far)
	var both sync.WaitGroup
	both.Go(func() { l.copy(far, near) })
	both.Go(func() { l.copy(near, far) })
	both.Wait()
}

// copy carries one direction until either end is closed, and then closes it at the other end.
func (l *Link) copy(to, from net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if !l.pass(int64(n)) {
			return
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				_ = from.Close()
				return
			}
		}
		if errors.Is(err, io.EOF) {
			_ = to.(*net.TCPConn).CloseWrite() // the other direction may still have data
			return
		}
		if err != nil {
			_ = to.Close()
			return
		}
	}
}

// pass waits as long as the Link demands, and returns false when it is closed.
func (l *Link) pass(bytes int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if delay := l.delay; delay > 0 {
		l.mu.Unlock()
		<-time.After(delay)
		l.mu.Lock()
	}
	for l.cut && !l.closed {
		l.change.Wait()
	}
	l.carried += bytes
	return !l.closed
}

func (l *Link) keep(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.open[c] = true
	}
	return !l.closed
}

func (l *Link) forget(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
}
