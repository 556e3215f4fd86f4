package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/jobstream/jobstream/cmd/dev/manifests"
)

// guide is what a user needs to know about a running system.
type guide struct {
	apiServer, kubeconfig, nats string
	trigger, reconciler         addresses
	node                        bool
	manifest                    string // a file to apply
	path                        string // a folder with kubectl's plugin
	aftermath                   string // the effect of Ctrl-C
}

// guideTo collects all addresses, and writes the manifests that the guide mentions.
func guideTo(s *system) (guide, error) {
	dir := filepath.Join(s.dir, "manifests")
	if err := manifests.WriteTo(dir); err != nil {
		return guide{}, fmt.Errorf("write the example manifests: %w", err)
	}
	path := filepath.Join(s.dir, "bin")
	if err := plugIn(path); err != nil {
		return guide{}, fmt.Errorf("make a folder with kubectl's plugin: %w", err)
	}
	g := guide{
		apiServer: s.rest.Host, kubeconfig: s.kubeconfig, nats: s.nats.URL(),
		trigger: s.plan.Trigger, reconciler: s.plan.Reconciler, node: s.plan.Node,
		manifest: filepath.Join(dir, manifests.Example+".yaml"), path: path,
	}
	g.aftermath = "Ctrl-C stops everything and leaves nothing behind."
	if s.plan.Dir != "" {
		g.aftermath = "Ctrl-C stops everything; the cluster goes on next time with --dir " + s.plan.Dir + "."
	}
	return g, nil
}

// String returns the guide as text.
func (g guide) String() string {
	var b strings.Builder
	line := func(what, where string) { fmt.Fprintf(&b, "  %-12s %s\n", what, where) }
	b.WriteString("\njobstream is up.\n\n")
	line("API server", g.apiServer)
	line("kubeconfig", g.kubeconfig)
	line("NATS", g.nats)
	line("trigger", g.trigger.String())
	line("reconciler", g.reconciler.String())
	if g.node {
		line("node", "runs the commands of Pods as processes of this machine; images are ignored")
	}
	fmt.Fprintf(&b, `
In another terminal, an Indexed Job with a value for each of its Pods:

  export KUBECONFIG=%[1]s PATH=%[2]s:"$PATH"
  kubectl jobstream run greet --image=busybox --per-completion-env=WHO="Ada Grace Linus" --logs -- echo 'Hello, $(WHO)!'

And then:

  kubectl jobstream
  kubectl jobstream run --help
  kubectl apply -f %[3]s
  kubectl jobstream wait %[4]s
  kubectl jobstream logs %[4]s

Jobs whose spec says "managedBy: jobstream.dev/reconciler" are jobstream's.
%[5]s
`, quoted(g.kubeconfig), quoted(g.path), quoted(g.manifest), manifests.Example, g.aftermath)
	return b.String()
}

// String returns the addresses as text.
func (a addresses) String() string {
	return "http://" + a.metrics + "/metrics  http://" + a.health + "/readyz"
}
