package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

const (
	// knownPanic is in the stack of a panic of kube-apiserver v1.36.3 that is seldom and has nothing to do with what clients send: its
	// OpenAPI cache has no value yet while it learns of a new kind. Any other end may be a client's doing, and is reported.
	knownPanic = "k8s.io/kube-openapi/pkg/cached."
	// mostRestarts bounds how often it is forgiven.
	mostRestarts = 3
)

// apiServerEnded starts the API server again after the known panic, as the kubelet of a cluster does: a client that repeats its requests
// then goes on, and any other one gets an error. StopAPIServer does not come here.
func (cp *ControlPlane) apiServerEnded(how error) {
	cp.mu.Lock()
	p, again := cp.api, strings.Contains(how.Error(), knownPanic) && cp.serves && !cp.stopped && cp.restarts < mostRestarts
	if again {
		cp.restarts++
	}
	cp.mu.Unlock()
	if !again {
		cp.reportDeath(how)
		return
	}
	fmt.Fprintln(os.Stderr, "controlplane: starting the API server again:", how)
	go func() {
		<-p.Done() // until then it counts as running
		err := cp.StartAPIServer(context.Background())
		if err != nil && !errors.Is(err, errEnded) { // the end of the next one comes here itself
			cp.reportDeath(errors.Join(how, err))
		}
	}()
}
