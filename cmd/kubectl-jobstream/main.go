// Command kubectl-jobstream is a plugin of kubectl, and is called as "kubectl jobstream". It needs a kubeconfig, and nothing else
// of jobstream: what it makes, trigger and reconciler find in the cluster.
package main

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // what a kubeconfig may ask for

	"github.com/jobstream/jobstream/internal/kubectl"
)

func main() { os.Exit(kubectl.Main(os.Args, os.Stdin, os.Stdout, os.Stderr)) }
