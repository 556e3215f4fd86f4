package bus

import (
	"math/rand/v2"
	"time"
)

const (
	// reconnectWait is the first pause between two rounds of attempts to reach a lost server. It is short, since no work can be
	// done meanwhile. It doubles up to reconnectAtMost, which is the longest time for which a client can overlook a server that
	// is back.
	reconnectWait   = 250 * time.Millisecond
	reconnectAtMost = 4 * time.Second
)

// reconnectDelay returns the pause after the given number of rounds through all servers, from 1. It varies by a quarter up or
// down, so that many programs do not reconnect at the same moment.
func reconnectDelay(rounds int) time.Duration {
	d := reconnectAtMost
	if shift := max(rounds, 1) - 1; shift < 8 { // reaches the maximum and cannot overflow
		d = min(reconnectWait<<shift, reconnectAtMost)
	}
	return d*3/4 + time.Duration(rand.Int64N(int64(d)/2+1))
}
