// Package port draws ports for servers that tests and the demo start, and may start again.
//
// A server that listens on port 0 gets one of the kernel's ephemeral range (ip_local_port_range: from 32768 on Linux, from 49152 elsewhere). So
// does every client's connection. A port that was free a moment ago, or that a stopped server had, may then be the source of another
// program's connection, and stays taken as long as that lasts. The ports of this package are below that range.
package port

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
)

const first, last = 10_000, 32_000

// drawn counts on, so that a process gets no port twice. It begins anywhere, since other processes do the same.
var drawn atomic.Int32

func init() { drawn.Store(rand.Int32N(last - first)) }

// Free returns a port from 10000 to 31999 on which no program listens on 127.0.0.1. The error reports that there is none, and why the
// last one could not be had.
func Free() (port int, err error) {
	for range last - first {
		port = first + int(drawn.Add(1))%(last-first)
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("no port of 127.0.0.1 from %d to %d is free: %w", first, last-1, err)
}
