package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// mostRestarts bounds how often an API server is started again that has ended by itself: one that ends each time has a cause that a
// further start does not remove.
const mostRestarts = 3

// apiServerEnded starts the API server again, as the kubelet of a cluster does: seldom, it panics while it learns of a new kind
// (kube-openapi's cached.Atomic has no value yet). A client that repeats its requests then goes on, and any other one gets an error.
// StopAPIServer does not come here.
func (cp *ControlPlane) apiServerEnded(how error) {
	cp.mu.Lock()
	p, again := cp.api, cp.serves && !cp.stopped && cp.restarts < mostRestarts
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
		<-p.Done()                                                                                   // until then it counts as running
		if err := cp.StartAPIServer(context.Background()); err != nil && !errors.Is(err, errEnded) { // the next one's end comes here itself
			cp.reportDeath(errors.Join(how, err))
		}
	}()
}
