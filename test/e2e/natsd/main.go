// Command natsd runs a NATS server with JetStream as a process of its own, so that a test can kill it, delete its data and
// replace it by an empty one. Alone it is the server that the product embeds; with -cluster-port it is one of several, and with
// -config it runs with that file, as an operator would run them. It listens on loopback.
package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jobstream/jobstream/bus/embedded"
)

func main() {
	dir := flag.String("dir", "", "folder of the streams")
	port := flag.Int("port", -1, "port on 127.0.0.1; -1 takes a free one")
	maxPayload := flag.Int("max-payload", 0, "bytes; 0 for what jobstream needs")
	config := flag.String("config", "", "configuration file of a NATS server, such as one with accounts; for a server alone")
	var m member
	flag.StringVar(&m.name, "name", "", "name of the server in its cluster")
	flag.IntVar(&m.port, "cluster-port", 0, "port on 127.0.0.1 for the other servers; 0 for a server alone")
	flag.StringVar(&m.routes, "routes", "", "URLs by which this server reaches the others, separated by commas")
	profiles := flag.Bool("pprof", false, "serve Go profiles at /debug/pprof/, on a free port of 127.0.0.1")
	flag.Parse()
	if *profiles {
		if err := serveProfiles(); err != nil {
			fmt.Fprintln(os.Stderr, "natsd:", err)
			os.Exit(1)
		}
	}
	c := embedded.Config{StoreDir: *dir, Port: *port, MaxPayload: int32(*maxPayload)}
	url, shutdown, err := start(c, m, *config)
	if err != nil {
		fmt.Fprintln(os.Stderr, "natsd:", err)
		os.Exit(1)
	}
	fmt.Printf("listening url=%s\n", url)
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM)
	<-asked
	shutdown()
}

// serveProfiles serves them until the process ends, and prints where, as the programs do.
func serveProfiles() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("serving what=pprof-bind-address address=%s\n", l.Addr())
	go func() { _ = (&http.Server{ReadHeaderTimeout: time.Second}).Serve(l) }() // of http.DefaultServeMux, which net/http/pprof adds to
	return nil
}

func start(c embedded.Config, m member, config string) (url string, shutdown func(), err error) {
	switch {
	case m.port != 0:
		return m.start(c)
	case config != "":
		return configured(c, config)
	}
	s, err := embedded.Start(c)
	if err != nil {
		return "", nil, err
	}
	return s.URL(), s.Shutdown, nil
}
