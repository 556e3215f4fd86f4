package harness

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"

	"k8s.io/client-go/tools/clientcmd"
)

// Proxy stands between the programs and the API server. It forwards everything until a test begins to answer.
type Proxy struct {
	server *httptest.Server

	mu       sync.Mutex
	answer   Answer
	answered int
}

// Answer answers a request in the API server's place and returns true, or returns false to forward it.
type Answer func(http.ResponseWriter, *http.Request) bool

// startProxy starts a proxy and writes a kubeconfig that leads to it.
func (s *System) startProxy() error {
	authority := x509.NewCertPool()
	if !authority.AppendCertsFromPEM(s.REST.CAData) {
		return errors.New("the control plane's authority has no certificate")
	}
	target, err := url.Parse(s.ControlPlane.URL())
	if err != nil {
		return err
	}
	through := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true},
		FlushInterval: -1, // watches
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	x := &Proxy{}
	x.server = httptest.NewUnstartedServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		if !x.stepsIn(out, in) {
			through.ServeHTTP(out, in)
		}
	}))
	x.server.EnableHTTP2 = true
	x.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	x.server.StartTLS()
	s.onStop(func() error { x.server.CloseClientConnections(); x.server.Close(); return nil })
	s.Proxy = x
	return x.writeKubeconfig(s)
}

func (x *Proxy) writeKubeconfig(s *System) error {
	c, err := clientcmd.LoadFromFile(s.ControlPlane.Kubeconfig())
	if err != nil {
		return err
	}
	for _, cluster := range c.Clusters {
		cluster.Server = x.server.URL
		cluster.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: x.server.Certificate().Raw})
	}
	s.kubeconfig = s.path("proxy.kubeconfig")
	return clientcmd.WriteToFile(*c, s.kubeconfig)
}

// stepsIn answers the request, if the test wants that.
func (x *Proxy) stepsIn(out http.ResponseWriter, in *http.Request) bool {
	x.mu.Lock()
	answer := x.answer
	x.mu.Unlock()
	if answer == nil || !answer(out, in) {
		return false
	}
	x.mu.Lock()
	x.answered++
	x.mu.Unlock()
	return true
}

// Begin answers requests from now on. Connections are closed, so that watches must be reopened.
func (x *Proxy) Begin(answer Answer) {
	x.mu.Lock()
	x.answer = answer
	x.mu.Unlock()
	x.server.CloseClientConnections()
}

// End forwards everything again, and returns how many requests were answered.
func (x *Proxy) End() (answered int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.answer = nil
	return x.answered
}
