package harness

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
)

// APIServer is the name of the API server as the end of a Link.
const APIServer = "kube-apiserver"

// way returns the address by which one part reaches another: a Link's, if there are Links.
func (s *System) way(from, to, address string) (string, error) {
	if !s.config.Linked {
		return address, nil
	}
	l, err := NewLink(from, to, address)
	if err != nil {
		return "", err
	}
	s.onStop(l.Close)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.links = append(s.links, l)
	return l.Address(), nil
}

// Links returns the ways between the parts, if Config.Linked is set.
func (s *System) Links() []*Link {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.links)
}

// reached returns a program that reaches the others by ways of its own.
func (s *System) reached(name, path string, args ...string) (*Process, error) {
	user := "reconciler" // of deploy/nats/accounts.conf
	if path == s.config.Programs.Trigger {
		user = "trigger"
	}
	if s.config.Deployed {
		p := s.process(name, path, slices.Concat(s.Identity(user), args)...)
		p.Env = []string{} // nothing of the test's environment
		return p, nil
	}
	kubeconfig, err := s.kubeconfigOf(name)
	if err != nil {
		return nil, err
	}
	var urls []string
	for _, n := range s.Servers {
		where, err := url.Parse(n.URL)
		if err != nil {
			return nil, err
		}
		address, err := s.way(name, n.Name, where.Host)
		if err != nil {
			return nil, err
		}
		urls = append(urls, (&NATS{URL: "nats://" + address, user: n.user}).As(user))
	}
	return s.program(name, path, kubeconfig, strings.Join(urls, ","), args...), nil
}

// kubeconfigOf returns a kubeconfig that leads to the API server by a way of the part's own.
func (s *System) kubeconfigOf(part string) (string, error) {
	if !s.config.Linked {
		return s.kubeconfig, nil
	}
	where, err := url.Parse(s.ControlPlane.URL())
	if err != nil {
		return "", err
	}
	address, err := s.way(part, APIServer, where.Host)
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	c, err := clientcmd.LoadFromFile(s.ControlPlane.Kubeconfig())
	if err != nil {
		return "", err
	}
	for _, cluster := range c.Clusters {
		cluster.Server = "https://127.0.0.1:" + port
	}
	file := s.path(part + ".kubeconfig")
	return file, clientcmd.WriteToFile(*c, file)
}
