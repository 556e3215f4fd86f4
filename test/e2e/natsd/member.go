package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/jobstream/jobstream/bus/embedded"
)

const (
	// timeout is for a server that reads its data back on a busy machine.
	timeout = 30 * time.Second
	// unused is an address on which no program listens.
	unused = "127.0.0.1:1"
)

// member is the configuration of a server as one of a cluster.
type member struct {
	name   string
	port   int
	routes string
}

// start starts the server and returns when clients may connect, before the cluster has a leader.
func (m member) start(c embedded.Config) (url string, shutdown func(), err error) {
	return run(&server.Options{
		ServerName: m.name, Host: "127.0.0.1", Port: c.Port, MaxPayload: cmp.Or(c.MaxPayload, 8<<20),
		JetStream: true, StoreDir: c.StoreDir, NoSigs: true, Logtime: true,
		// The others are reached by the routes alone, and clients get no other address than the one they have: a test that cuts
		// those has cut everything.
		Cluster: server.ClusterOpts{Name: "chaos", Host: "127.0.0.1", Port: m.port, Advertise: unused, NoAdvertise: true},
		Routes:  server.RoutesFromStr(m.routes),
	})
}

// configured starts a server alone with an operator's configuration; the port and the folder are the test's.
func configured(c embedded.Config, file string) (url string, shutdown func(), err error) {
	o, err := server.ProcessConfigFile(file)
	if err != nil {
		return "", nil, err
	}
	o.Host, o.Port, o.StoreDir, o.NoSigs, o.Logtime = "127.0.0.1", c.Port, c.StoreDir, true, true
	return run(o)
}

func run(o *server.Options) (url string, shutdown func(), err error) {
	s, err := server.NewServer(o)
	if err != nil {
		return "", nil, err
	}
	s.ConfigureLogger()
	s.Start()
	if !s.ReadyForConnections(timeout) {
		s.Shutdown()
		return "", nil, fmt.Errorf("%s is not ready after %v: see what it has printed", s.Name(), timeout)
	}
	return s.ClientURL(), func() { s.Shutdown(); s.WaitForShutdown() }, nil
}
