package processnode

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// markName is the variable that marks every process of a node with the UID of its Node object. Environments are
// inherited: the mark finds processes that have left their group, and those of a node that was killed.
const markName = "JOBSTREAM_NODE"

// killStrays kills every process that carries the mark and returns their number. It repeats the search until it finds none,
// because a process may fork meanwhile.
func killStrays(mark string) int {
	const rounds = 20 // one kill takes effect at once: more rounds meet only a fork bomb
	want := []byte(markName + "=" + mark)
	killed := map[int]bool{}
	for range rounds {
		found := false
		for _, pid := range marked(want) {
			found = true
			killed[pid] = true
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if !found {
			break
		}
		<-time.After(time.Millisecond) // until the killed are reaped
	}
	return len(killed)
}

// marked lists the processes whose environment holds the variable.
func marked(want []byte) []int {
	entries, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil
	}
	var pids []int
	for _, path := range entries {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		b, err := os.ReadFile(path) // empty for a zombie, refused for another user's
		if err != nil {
			continue
		}
		for _, v := range bytes.Split(b, []byte{0}) {
			if bytes.Equal(v, want) {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}
