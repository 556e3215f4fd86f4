package port_test

import (
	"fmt"
	"net"
	"testing"

	"github.com/jobstream/jobstream/internal/dev/port"
)

// Ports differ, can be listened on, and are none that the kernel gives to others; one that is taken is passed over.
func TestFree(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		p, err := port.Free()
		if err != nil {
			t.Fatal(err)
		}
		if seen[p] || p < 10_000 || p >= 32_000 {
			t.Errorf("%d, after %v", p, seen)
		}
		seen[p] = true
		taken, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p+1))
		if err != nil {
			continue // another program has it, and so it is passed over all the same
		}
		defer taken.Close()
	}
}
