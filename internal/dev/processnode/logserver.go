package processnode

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"time"
)

// server is the part of a kubelet's HTTPS server that kubectl logs needs. The API server connects to the node's InternalIP and
// kubelet port and, unless it has a certificate authority for kubelets, accepts any certificate. There is no authentication: the
// server listens on loopback only, for users who can read the machine's files anyway.
type server struct {
	listener net.Listener
	http     *http.Server
}

// findLog returns the log of a container; nil if it has none yet, an error if there is no such Pod.
type findLog func(namespace, pod, container string, previous bool) (*logFile, error)

func newServer(address string, find findLog, log *slog.Logger) (*server, error) {
	cert, err := selfSigned(address)
	if err != nil {
		return nil, fmt.Errorf("cannot make a serving certificate: %w", err)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return nil, fmt.Errorf("cannot serve logs: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		serveLog(w, r, find)
	})
	return &server{
		listener: tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}),
		http: &http.Server{
			Handler: mux, ReadHeaderTimeout: 10 * time.Second,
			ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		},
	}, nil
}

func (s *server) port() int32 { return int32(s.listener.Addr().(*net.TCPAddr).Port) }

// run serves until ctx ends, and then also ends followed logs.
func (s *server) run(ctx context.Context) error {
	s.http.BaseContext = func(net.Listener) context.Context { return ctx }
	stop := context.AfterFunc(ctx, func() { s.http.Close() })
	defer stop()
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("the log server ended: %w", err)
	}
	return nil
}

func serveLog(w http.ResponseWriter, r *http.Request, find findLog) {
	q, err := parseLogQuery(r.URL.Query(), time.Now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	pod, container := r.PathValue("pod"), r.PathValue("container")
	l, err := find(r.PathValue("namespace"), pod, container, q.previous)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	case l == nil && q.previous:
		http.Error(w, fmt.Sprintf("previous terminated container %q in pod %q not found", container, pod), http.StatusBadRequest)
		return
	case l == nil:
		http.Error(w, fmt.Sprintf("container %q in pod %q is waiting to start, or ran before the node was restarted", container, pod), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	flush := func() {}
	if f, ok := w.(http.Flusher); ok && q.follow {
		flush = f.Flush
	}
	flush() // send headers at once: a client that follows a silent container waits for lines, not for a response
	_ = l.read(r.Context(), q, w, flush)
}

// selfSigned makes a certificate for the life of this node. It is never written anywhere.
func selfSigned(address string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "processnode"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.ParseIP(address)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
