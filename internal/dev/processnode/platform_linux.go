package processnode

import (
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

// newLauncher returns what runs the containers of this node; dir is theirs.
func (n *Node) newLauncher(dir string) (launcher, error) {
	if n.cfg.Hollow {
		return hollow{}, nil
	}
	return &processes{
		dir: dir, client: n.cfg.Client, ip: n.cfg.Address, capacity: n.capacity(), starter: newStarter(), logs: n.logs,
		paths: map[types.UID][]string{},
	}, nil
}

// machineMemory is how much memory the machine has.
func machineMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 1 << 30 // no more than a number that Kubernetes wants to see
	}
	return int64(info.Totalram * uint64(info.Unit))
}

func kernelVersion() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}
