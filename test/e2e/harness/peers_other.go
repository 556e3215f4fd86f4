//go:build !linux

package harness

import (
	"errors"
	"fmt"
)

// Peers is not available on this system.
func (p *Process) Peers() (map[string]bool, error) {
	return nil, fmt.Errorf("peers of %s: %w", p.Name, errors.ErrUnsupported)
}
