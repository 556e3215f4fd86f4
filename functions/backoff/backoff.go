// Package backoff computes delays: how long after the n-th failure in a row the next try may start.
package backoff

import "time"

// Policy doubles a delay from Base up to Max.
type Policy struct{ Base, Max time.Duration }

// Pods is the delay of Pod creation after failed Pods: 10 s, 20 s, 40 s, … 10 min (Kubernetes 1.36, DefaultJobPodFailureBackOff
// and MaxJobPodFailureBackOff; proposal job.md, backoffSeconds).
var Pods = Policy{Base: 10 * time.Second, Max: 10 * time.Minute}

// API is the delay of an effect that the API server refused: 1 s doubling to 1 min (Kubernetes 1.36, job controller's queue).
var API = Policy{Base: time.Second, Max: time.Minute}

// Delay returns the delay after the given number of failures in a row, 0 for none.
func (p Policy) Delay(failures int) time.Duration {
	if failures <= 0 {
		return 0
	}
	d := p.Base
	for i := 1; i < failures; i++ {
		if d >= p.Max/2 {
			return p.Max
		}
		d *= 2
	}
	return min(d, p.Max)
}
