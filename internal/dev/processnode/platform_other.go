//go:build !linux

package processnode

import (
	"errors"
	"runtime"
)

// newLauncher returns what runs the containers of this node: without Linux, none but the hollow one.
func (n *Node) newLauncher(string) (launcher, error) {
	if n.cfg.Hollow {
		return hollow{}, nil
	}
	return nil, errors.New("processnode: processes are run as containers on Linux only, not on " + runtime.GOOS +
		": use a hollow node, or a Linux machine")
}

// machineMemory returns some number, because Kubernetes requires one.
func machineMemory() int64 { return 8 << 30 }

func kernelVersion() string { return "" }
