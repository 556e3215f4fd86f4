// Package port draws ports for servers that tests and the demo start, and may start again.
//
// A server that listens on port 0 gets one of the kernel's ephemeral range (ip_local_port_range: from 32768 on Linux, from 49152 elsewhere). So
// does every client's connection. A port that was free a moment ago, or that a stopped server had, may then be the source of another
// program's connection, and stays taken as long as that lasts. The ports of this package are below that range.
//
// A server listens seconds after its port was drawn, and not at all while it is restarted. Until the process that drew the port ends,
// it keeps the UDP port of the same number, which no server here uses: so no other process that draws by this package gets it.
package port

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

const first, last = 10_000, 32_000

// drawn are the ports of this process. The search for the next one begins anywhere, since other processes do the same.
var drawn = struct {
	sync.Mutex
	next   int // the last number that was tried, less first
	claims []net.PacketConn
}{next: rand.IntN(last - first)}

// Free returns a port from 10000 to 31999 on which no program listens on 127.0.0.1, and which Free has not returned before, to this
// process or to another one that still runs. The error reports that there is none, and why the last one could not be had.
func Free() (port int, err error) {
	drawn.Lock()
	defer drawn.Unlock()
	for range last - first {
		drawn.next = (drawn.next + 1) % (last - first)
		port = first + drawn.next
		var claim net.PacketConn
		if claim, err = claimed(port); err == nil {
			drawn.claims = append(drawn.claims, claim)
			return port, nil
		}
	}
	return 0, fmt.Errorf("no port of 127.0.0.1 from %d to %d is free: %w", first, last-1, err)
}

// claimed keeps a port from others that draw. The error reports that another process has drawn it, or listens on it.
func claimed(port int) (net.PacketConn, error) {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	claim, err := net.ListenPacket("udp", address)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		_ = claim.Close()
		return nil, err
	}
	return claim, l.Close()
}
