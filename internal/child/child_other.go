//go:build !linux

package child

import "syscall"

// dieWithParent puts a child into its own process group. Only Linux can tie its life to its parent's: elsewhere
// kill -9 of this program leaves the children running.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
