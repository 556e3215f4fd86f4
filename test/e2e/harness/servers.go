package harness

import (
	"context"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/internal/dev/port"
)

// startServers starts a cluster of NATS servers, nats-0 and so on, each a process of its own. Each has a way of its own to each
// of the others.
func (s *System) startServers(ctx context.Context) error {
	n := s.config.Servers
	ports, err := freePorts(2 * n)
	if err != nil {
		return err
	}
	clients, peers := ports[:n], ports[n:]
	for i := range n {
		name := "nats-" + strconv.Itoa(i)
		var routes []string
		for j := range n {
			if i == j {
				continue
			}
			address, err := s.way(name, "nats-"+strconv.Itoa(j), net.JoinHostPort("127.0.0.1", peers[j]))
			if err != nil {
				return err
			}
			routes = append(routes, "nats://"+address)
		}
		server := &NATS{dir: s.path(name)}
		server.Process = &Process{Name: name, Path: s.config.Programs.NATS, LogFile: s.path(name + ".log"), Args: []string{
			"-dir=" + server.dir, "-name=" + name, "-port=" + clients[i], "-cluster-port=" + peers[i], "-routes=" + strings.Join(routes, ","),
		}}
		s.Servers = append(s.Servers, server)
		s.onStop(server.Kill)
		if err := server.Restart(ctx); err != nil {
			return err
		}
	}
	s.NATS = s.Servers[0]
	return s.AwaitJetStream(ctx)
}

// NATSURL names all servers.
func (s *System) NATSURL() string {
	var urls []string
	for _, n := range s.Servers {
		urls = append(urls, n.URL)
	}
	return strings.Join(urls, ",")
}

// AwaitJetStream waits until the servers have elected a leader and serve.
func (s *System) AwaitJetStream(ctx context.Context) error {
	return Poll(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // no server answers without a leader
		defer cancel()
		nc, err := nats.Connect(s.NATSURL(), nats.Name("harness"))
		if err != nil {
			return err
		}
		defer nc.Close()
		js, err := jetstream.New(nc)
		if err == nil {
			_, err = js.AccountInfo(ctx)
		}
		return err
	})
}

// freePorts returns unused ports of loopback. Another program may take one before it is used: then the start waits until it is
// free again.
func freePorts(n int) (ports []string, err error) {
	for range n {
		p, err := port.Free()
		if err != nil {
			return nil, err
		}
		ports = append(ports, strconv.Itoa(p))
	}
	return ports, nil
}
