package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

const (
	// healTime allows for a start on a busy machine.
	healTime = 5 * time.Minute
	// catchUpTime is how long a wipe waits until the recorder has received what is about to be deleted.
	catchUpTime = 20 * time.Second
	// theBus and theNodes break in one way at a time: two of three servers must stay.
	theBus, theNodes = "nats", "nodes"
)

// plan is how a fault begins and heals. Faults of the same part wait for each other.
type plan struct {
	part, what  string
	begin, heal func(context.Context) error
}

func (s *storm) plan(f Fault) plan {
	y := s.system
	switch f.Kind {
	case KillTrigger:
		return s.kill(y.Triggers[f.Target%len(y.Triggers)])
	case FreezeTrigger:
		return freeze(y.Triggers[f.Target%len(y.Triggers)])
	case KillReconciler:
		return s.kill(y.Reconcilers[f.Target%len(y.Reconcilers)])
	case FreezeReconciler:
		return freeze(y.Reconcilers[f.Target%len(y.Reconcilers)])
	case KillServer:
		return onBus(s.kill(y.Servers[f.Target%len(y.Servers)].Process))
	case KillLeader:
		return s.killLeader(f)
	case FreezeServer:
		return onBus(freeze(y.Servers[f.Target%len(y.Servers)].Process))
	case KillAPIServer:
		return plan{part: harness.APIServer, what: harness.APIServer,
			begin: func(context.Context) error { return y.ControlPlane.StopAPIServer() },
			heal:  bounded(y.ControlPlane.StartAPIServer)}
	case CutNetwork, SlowNetwork:
		return s.network(f)
	case KillNode:
		return s.killNode(f)
	case WipeBus:
		return s.wipe()
	case ShiftClock:
		all := append(slices.Clone(y.Triggers), y.Reconcilers...)
		return s.shift(all[f.Target%len(all)], f.By)
	}
	panic("no such fault: " + f.Kind)
}

func bounded(do func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, healTime)
		defer cancel()
		return do(ctx)
	}
}

func onBus(p plan) plan {
	p.part = theBus
	return p
}

func (s *storm) kill(p *harness.Process) plan {
	return plan{part: p.Name, what: p.Name,
		begin: func(context.Context) error { return s.keeper.kill(p) },
		heal:  func(context.Context) error { s.keeper.raise(p); return nil }}
}

// freeze stops the process where it is. It may just have ended by itself, which is no error.
func freeze(p *harness.Process) plan {
	harmless := func(err error) error {
		if err != nil && !p.Running() {
			return nil
		}
		return err
	}
	return plan{part: p.Name, what: p.Name,
		begin: func(context.Context) error { return harmless(p.Freeze()) },
		heal:  func(context.Context) error { return harmless(p.Thaw()) }}
}

// killLeader kills the server that leads the stream of facts at that moment.
func (s *storm) killLeader(f Fault) plan {
	victim := s.system.Servers[f.Target%len(s.system.Servers)].Process
	return plan{part: theBus, what: "the leader of the facts",
		begin: func(ctx context.Context) error {
			leader, err := s.recorder.leader(ctx)
			if err != nil {
				s.log.Info("the leader is unknown: a drawn server is killed", "err", err)
			}
			for _, n := range s.system.Servers {
				if n.Name == leader {
					victim = n.Process
				}
			}
			s.log.Info("dies", "server", victim.Name, "leader", leader)
			return s.keeper.kill(victim)
		},
		heal: func(context.Context) error { s.keeper.raise(victim); return nil }}
}

// network breaks the ways between two parts.
func (s *storm) network(f Fault) plan {
	all := s.ways()
	w := all[f.Target%len(all)]
	p := plan{part: w.part, what: w.name}
	p.begin = func(context.Context) error {
		for _, l := range w.links {
			if f.Kind == CutNetwork {
				l.Cut()
			} else {
				l.Slow(f.By)
			}
		}
		return nil
	}
	p.heal = func(context.Context) error {
		for _, l := range w.links {
			l.Heal()
		}
		return nil
	}
	return p
}

// way is a connection between two parts. Since a program that is cut off from one NATS server connects to another, there is also
// a way to all of them.
type way struct {
	name, part string
	links      []*harness.Link
}

func (s *storm) ways() (all []way) {
	find := func(between func(l *harness.Link) string) {
		found := map[string]int{}
		for _, l := range s.system.Links() {
			name := between(l)
			if name == "" {
				continue
			}
			i, known := found[name]
			if !known {
				i = len(all)
				found[name] = i
				part := "way " + name
				if strings.HasPrefix(l.From, theBus) {
					part = theBus
				}
				all = append(all, way{name: name, part: part})
			}
			all[i].links = append(all[i].links, l)
		}
	}
	find(func(l *harness.Link) string {
		ends := []string{l.From, l.To}
		slices.Sort(ends)
		return strings.Join(ends, " and ")
	})
	find(func(l *harness.Link) string {
		if strings.HasPrefix(l.To, theBus) && !strings.HasPrefix(l.From, theBus) {
			return l.From + " and all of NATS"
		}
		return ""
	})
	return all
}

// killNode kills a node with all that runs there. Then the Node is deleted, as a cloud provider does for a machine that is gone,
// and another one joins.
func (s *storm) killNode(f Fault) plan {
	return plan{part: theNodes, what: "a node",
		begin: func(context.Context) error {
			var alive []*harness.Process
			for _, n := range s.system.Nodes() {
				if n.Running() {
					alive = append(alive, n)
				}
			}
			victim := alive[f.Target%len(alive)]
			s.log.Info("dies", "node", victim.Name)
			s.mu.Lock()
			s.lost[victim.Name] = time.Now()
			s.mu.Unlock()
			return victim.Kill()
		},
		heal: bounded(func(ctx context.Context) error {
			return errors.Join(s.deleteLost(ctx), func() error { _, err := s.system.AddNode(ctx); return err }())
		})}
}

func (s *storm) deleteLost(ctx context.Context) error {
	s.mu.Lock()
	var names []string
	for name := range s.lost {
		names = append(names, name)
	}
	s.mu.Unlock()
	for _, name := range names {
		err := harness.Poll(ctx, func(ctx context.Context) error {
			err := s.system.Client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("delete Node %s: %w", name, err)
		}
	}
	return nil
}

// wipe kills all NATS servers at once and deletes their data, announcements included. Before that the recorder receives as much
// as it can; what is announced between that moment and the wipe is announced again.
func (s *storm) wipe() plan {
	servers := s.system.Servers
	return plan{part: theBus, what: "all NATS servers, and their data",
		begin: func(ctx context.Context) (err error) {
			if !s.recorder.catchUp(ctx, catchUpTime) {
				s.log.Warn("the recorder is behind: the wipe deletes events that it has not received")
				s.recorder.deaf()
			}
			for _, n := range servers {
				err = errors.Join(err, s.keeper.kill(n.Process))
			}
			for _, n := range servers {
				err = errors.Join(err, n.Wipe())
			}
			return err
		},
		heal: func(context.Context) error {
			for _, n := range servers {
				s.keeper.raise(n.Process)
			}
			return nil
		}}
}

// shift restarts the program with another clock, and later with the right one.
func (s *storm) shift(p *harness.Process, by time.Duration) plan {
	const flag = "--clock-offset="
	restart := func(change func([]string) []string) error {
		err := s.keeper.kill(p)
		s.keeper.args(p, change)
		s.keeper.raise(p)
		return err
	}
	return plan{part: p.Name, what: p.Name,
		begin: func(context.Context) error {
			return restart(func(args []string) []string { return append(slices.Clone(args), flag+by.String()) })
		},
		heal: func(context.Context) error {
			return restart(func(args []string) []string {
				return slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, flag) })
			})
		}}
}
