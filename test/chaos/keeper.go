package chaos

import (
	"context"
	"sync"
	"time"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// restartEvery is how soon an ended program is restarted.
const restartEvery = 500 * time.Millisecond

// keeper restarts programs that have ended, as a kubelet does: a program that finds no API server or no bus at its start logs
// that and ends.
type keeper struct {
	mu   sync.Mutex
	down map[*harness.Process]bool // kept down by a fault
	all  []*harness.Process
}

func newKeeper(s *harness.System) *keeper {
	k := &keeper{down: map[*harness.Process]bool{}}
	k.all = append(append(k.all, s.Triggers...), s.Reconcilers...)
	for _, n := range s.Servers {
		k.all = append(k.all, n.Process)
	}
	return k
}

func (k *keeper) run(ctx context.Context) {
	tick := time.NewTicker(restartEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		k.mu.Lock()
		for _, p := range k.all {
			if !k.down[p] && !p.Running() {
				_ = p.Start() // if it fails, again in a moment
			}
		}
		k.mu.Unlock()
	}
}

// kill ends the process and keeps it down.
func (k *keeper) kill(p *harness.Process) error {
	k.mu.Lock()
	k.down[p] = true
	k.mu.Unlock()
	return p.Kill()
}

// raise lets the process start again.
func (k *keeper) raise(p *harness.Process) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.down, p)
}

// args changes the arguments with which a process that is down will start.
func (k *keeper) args(p *harness.Process, change func([]string) []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p.Args = change(p.Args)
}
