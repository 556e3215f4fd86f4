package harness

import (
	"context"
	"regexp"
	"strconv"
)

var registered = regexp.MustCompile(`registered name=(\S+)`)

// podsPerNode is how many run at once on a node of its own process: a few nodes together keep two cores busy.
const podsPerNode = 40

// AddNode starts one more node, as a process of its own: node-0 and so on. Nodes that were killed do not come back.
func (s *System) AddNode(ctx context.Context) (*Process, error) {
	name := "node-" + strconv.Itoa(s.nodes)
	s.nodes++
	kubeconfig, err := s.kubeconfigOf(name)
	if err != nil {
		return nil, err
	}
	p := &Process{Name: name, Path: s.config.Programs.Node, LogFile: s.path(name + ".log"), Args: []string{
		"-kubeconfig=" + kubeconfig, "-name=" + name, "-dir=" + s.config.Dir, "-max-pods=" + strconv.Itoa(podsPerNode),
	}}
	if err := p.Start(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.Nodes = append(s.Nodes, p)
	s.mu.Unlock()
	s.onStop(p.Stop)
	_, err = p.Await(ctx, registered)
	return p, err
}
