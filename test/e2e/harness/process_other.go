//go:build !linux

package harness

import "syscall"

// dieWithParent puts a child into its own process group. Only Linux can tie its life to its parent's.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
