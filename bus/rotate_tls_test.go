package bus

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.key, a.cert = a.sign(a.cert)
	return a
}

// sign creates a key and a certificate for it; the first time, the authority's own.
func (a *authority) sign(template *x509.Certificate) (*ecdsa.PrivateKey, *x509.Certificate) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	by := a.key
	if by == nil {
		by = key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), by)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		a.t.Fatal(err)
	}
	return key, cert
}

// issue writes ca.pem, cert.pem and key.pem for a server on loopback, or a client.
func (a *authority) issue(dir string) {
	a.t.Helper()
	key, cert := a.sign(&x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "me"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}})
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"ca.pem": {Type: "CERTIFICATE", Bytes: a.cert.Raw}, "cert.pem": {Type: "CERTIFICATE", Bytes: cert.Raw}, "key.pem": {Type: "EC PRIVATE KEY", Bytes: raw},
	} {
		put(a.t, filepath.Join(dir, name), string(pem.EncodeToMemory(block)))
	}
}

// The authority of the server's certificate, and of clients' certificates, is replaced at run time: the files of --nats-ca,
// --nats-cert and --nats-key are read again.
func TestRotatedAuthority(t *testing.T) {
	t.Parallel()
	theirs, ours, j := t.TempDir(), t.TempDir(), &journal{}
	first, second := newAuthority(t), newAuthority(t)
	first.issue(theirs)
	first.issue(ours)
	settings := fmt.Sprintf("tls { ca_file: %q, cert_file: %q, key_file: %q, verify: true }",
		filepath.Join(theirs, "ca.pem"), filepath.Join(theirs, "cert.pem"), filepath.Join(theirs, "key.pem"))
	s := configure(t, settings)
	b := connect(t, nil, logged(j), func(c *Config) {
		c.URL, c.CAFile = "tls://"+s.listen, filepath.Join(ours, "ca.pem")
		c.CertFile, c.KeyFile = filepath.Join(ours, "cert.pem"), filepath.Join(ours, "key.pem")
	})
	recovers(t, b, 1)
	second.issue(theirs)
	s.restart(t, settings)
	unready(t, b, j, "rejects this program", "x509", "--nats-ca ("+b.cfg.CAFile+")")
	second.issue(ours)
	recovers(t, b, 2)
}
