// Command kubectl-jobstream is a plugin of kubectl, called as "kubectl jobstream". It needs a kubeconfig and nothing else of
// jobstream: the trigger and the reconciler find the objects it creates in the cluster. Three of its commands ask NATS.
package main

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // authentication plugins that a kubeconfig may need

	"github.com/jobstream/jobstream/internal/kubectl"
)

func main() { os.Exit(kubectl.Main(os.Args, os.Stdin, os.Stdout, os.Stderr)) }
