package harness

import (
	"context"
	"regexp"
	"slices"
	"strconv"
)

var registered = regexp.MustCompile(`registered name=(\S+)`)

// podsPerNode is how many Pods run at once on a node of its own process: a few nodes together keep two cores busy.
const podsPerNode = 40

// AddNode starts another node, as a process of its own: node-0 and so on. Killed nodes do not come back.
func (s *System) AddNode(ctx context.Context) (*Process, error) {
	p := &Process{}
	s.mu.Lock()
	name := "node-" + strconv.Itoa(len(s.nodes))
	s.nodes = append(s.nodes, p)
	s.mu.Unlock()
	p.Name, p.Path, p.LogFile = name, s.config.Programs.Node, s.path(name+".log")
	kubeconfig, err := s.kubeconfigOf(name)
	if err != nil {
		return nil, err
	}
	p.Args = []string{"-kubeconfig=" + kubeconfig, "-name=" + name, "-dir=" + s.config.Dir, "-max-pods=" + strconv.Itoa(podsPerNode)}
	if err := p.Start(); err != nil {
		return nil, err
	}
	s.onStop(p.Stop)
	_, err = p.Await(ctx, registered)
	return p, err
}

// Nodes returns the nodes that run as processes of their own, including killed ones.
func (s *System) Nodes() []*Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.nodes)
}
