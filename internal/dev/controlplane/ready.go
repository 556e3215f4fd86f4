package controlplane

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// pollInterval is short beside a start of seconds, and costs a few hundred tiny requests at most.
const pollInterval = 25 * time.Millisecond

// waitFor returns when url answers 200. It returns an error when the program behind it ends, when ctx ends, or at the deadline;
// the error has the last response and the end of the program's output.
func (cp *ControlPlane) waitFor(ctx context.Context, p *process, url string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	// A client for this wait alone: idle connections would outlive the server that they belong to.
	client, err := cp.httpClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	var last error
	for {
		err := get(ctx, client, url)
		if err == nil && p.running() { // otherwise another program answered on its port
			return nil
		}
		if last == nil || ctx.Err() == nil { // the end of the wait says nothing about the program
			last = err
		}
		select {
		case <-ticker.C:
		case <-p.Done():
			return p.ended(p.Err())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready (%w), it last said: %w; the end of %s:\n%s",
				p.name, context.Cause(ctx), last, p.logFile, tail(p.logFile, 8))
		}
	}
}

// httpClient trusts this control plane's authority only, so that another control plane on the same port is not mistaken for it.
func (cp *ControlPlane) httpClient() (*http.Client, error) {
	config := cp.RESTConfig()
	transport, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	direct := &http.Transport{TLSClientConfig: transport} // no proxy: everything is on loopback
	authenticated, err := rest.HTTPWrappersForConfig(config, direct)
	if err != nil {
		return nil, err
	}
	// Long, because an API server that all its clients ask at once answers this question late, too, and asking again is asking more.
	const oneAnswer = 30 * time.Second
	return &http.Client{Transport: authenticated, Timeout: oneAnswer}, nil
}

func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(body)))
	}
	return nil
}
