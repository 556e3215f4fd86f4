package bus

import (
	"math/rand/v2"
	"time"
)

const (
	// reconnectWait is the first pause between two rounds of attempts to reach a lost server: short, since work stands still
	// meanwhile. It doubles up to reconnectAtMost, which is what a server that is back may have to wait for us.
	reconnectWait   = 250 * time.Millisecond
	reconnectAtMost = 4 * time.Second
)

// reconnectDelay is the pause after so many rounds through all servers, from 1; a quarter more or less, so that many
// programs do not come at once.
func reconnectDelay(rounds int) time.Duration {
	d := reconnectAtMost
	if shift := max(rounds, 1) - 1; shift < 8 { // enough to reach the end, too little to overflow
		d = min(reconnectWait<<shift, reconnectAtMost)
	}
	return d*3/4 + time.Duration(rand.Int64N(int64(d)/2+1))
}
