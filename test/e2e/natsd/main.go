// Command natsd is a NATS server with JetStream as a process of its own, so that a test can kill it, take its data away
// and put an empty one in its place. It is the server that the product embeds, listening on loopback.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/jobstream/jobstream/bus"
)

func main() {
	dir := flag.String("dir", "", "folder of the streams")
	port := flag.Int("port", -1, "port on 127.0.0.1; -1 takes a free one")
	maxPayload := flag.Int("max-payload", 0, "bytes; 0 for what jobstream needs")
	flag.Parse()
	s, err := bus.StartEmbedded(bus.EmbeddedConfig{StoreDir: *dir, Port: *port, MaxPayload: int32(*maxPayload)})
	if err != nil {
		fmt.Fprintln(os.Stderr, "natsd:", err)
		os.Exit(1)
	}
	fmt.Printf("listening url=%s\n", s.URL())
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM)
	<-asked
	s.Shutdown()
}
