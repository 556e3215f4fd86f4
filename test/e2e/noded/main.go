// Command noded runs a process node as a process of its own, so that a test can kill it with all of its Pods for good.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/jobstream/jobstream/internal/dev/processnode"
)

func main() {
	c := processnode.Config{}
	kubeconfig := flag.String("kubeconfig", "", "file with the address and the credentials of the API server")
	flag.StringVar(&c.Name, "name", "", "name of the Node")
	flag.StringVar(&c.DataDir, "dir", "", "folder of its files")
	flag.IntVar(&c.MaxPods, "max-pods", 0, "Pods that run at once; 0 for the default")
	flag.Parse()
	c.Log = slog.New(slog.NewTextHandler(os.Stdout, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *kubeconfig, c)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "noded:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig string, c processnode.Config) (err error) {
	if c.REST, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return err
	}
	node, err := processnode.New(c)
	if err != nil {
		return err
	}
	go func() {
		select {
		case <-node.Registered():
			fmt.Printf("registered name=%s\n", c.Name)
		case <-ctx.Done():
		}
	}()
	return node.Run(ctx)
}
