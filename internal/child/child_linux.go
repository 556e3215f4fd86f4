package child

import "syscall"

// dieWithParent puts a child into its own process group and has the kernel kill it with its parent thread.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
