package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobstream/jobstream/internal/app"
	"github.com/jobstream/jobstream/internal/child"
)

// reconcilerTimeout is how long a reconciler may take to stop, which includes handing over its partitions.
const reconcilerTimeout = 10 * time.Second

// killable is a reconciler in a process of its own: this program with its hidden command "reconciler".
type killable struct {
	// Out receives its log; Flags are the log flags.
	Out   io.Writer
	Flags []string

	process *child.Process // the live one
}

// reconcilerCommand is bin/reconciler inside this program, so that users need not build it.
func reconcilerCommand() *cobra.Command {
	config := app.ReconcilerDefaults()
	c := app.Program(&cobra.Command{Use: "reconciler", Short: "Run a reconciler alone", Hidden: true}, config.AddFlags,
		func(ctx context.Context, log *slog.Logger) error {
			config.Log = log
			return app.RunReconciler(ctx, config)
		})
	return c
}

// startKillable starts the first reconciler; ready waits for it with these probes.
func (s *system) startKillable(ctx context.Context, ready *app.Probes) error {
	health := net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(ctx, 0)))
	if err := s.startReconciler(health); err != nil {
		return err
	}
	ready.Set("reconciler", func(ctx context.Context) error { return askReady(ctx, health) })
	s.onStop(func() error { return s.plan.Killable.process.Stop(reconcilerTimeout) })
	return nil
}

// startReconciler starts a reconciler that serves its health at the address.
func (s *system) startReconciler(health string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	k := s.plan.Killable
	cmd := exec.Command(self, append([]string{"reconciler", "--kubeconfig=" + s.kubeconfig, "--nats-url=" + s.nats.URL(),
		"--cluster-name=" + s.plan.Cluster, "--metrics-bind-address=" + app.Off, "--health-bind-address=" + health}, k.Flags...)...)
	cmd.Stdout, cmd.Stderr = k.Out, k.Out
	k.process, err = child.Start(cmd, func(err error) {
		if err == nil {
			err = errors.New("for no reason")
		}
		s.fail("the reconciler", err)
	})
	return err
}

// killReconciler kills the reconciler with SIGKILL and returns its process id.
func (s *system) killReconciler() (int, error) {
	p := s.plan.Killable.process
	return p.ID(), p.Stop(0)
}

// askReady queries the health server at the address.
func askReady(ctx context.Context, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	report, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	return errors.New(string(report))
}
