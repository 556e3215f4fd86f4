package processnode

import (
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

// newLauncher returns the launcher of this node's containers; dir is its folder.
func (n *Node) newLauncher(dir string) (launcher, error) {
	if n.cfg.Hollow {
		return hollow{}, nil
	}
	return &processes{
		dir: dir, client: n.cfg.Client, ip: n.cfg.Address, capacity: n.capacity(), starter: newStarter(), logs: n.logs,
		paths: map[types.UID][]string{},
	}, nil
}

// machineMemory returns the size of the machine's memory, in bytes.
func machineMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 1 << 30 // Kubernetes requires some number
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
