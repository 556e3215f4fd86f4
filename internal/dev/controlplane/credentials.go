package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Files below pki/.
const (
	caFile            = "ca.crt"
	servingCert       = "serving.crt" // of the API server and of kube-controller-manager
	servingKey        = "serving.key"
	nodeClientCert    = "node-client.crt" // presented by the API server to nodes
	nodeClientKey     = "node-client.key"
	serviceAccountKey = "service-account.key"
	tokenFile         = "tokens.csv"
	secretFile        = "admin.token"
)

// credentials are what clients need to trust the API server and to be trusted by it.
type credentials struct {
	dir   string
	caPEM []byte
	token string // of a member of system:masters, which RBAC allows everything
}

// loadOrCreateCredentials creates all credentials, or reads those of an earlier run in dir: a copied kubeconfig
// stays valid, and so do the tokens of service accounts.
func loadOrCreateCredentials(dir string) (*credentials, error) {
	c := &credentials{dir: dir}
	// The token is written last, so it is there if all are.
	token, err := os.ReadFile(filepath.Join(dir, secretFile))
	if errors.Is(err, os.ErrNotExist) {
		if err := c.create(); err != nil {
			return nil, fmt.Errorf("certificates of the control plane: %w", err)
		}
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	c.token = string(token)
	if c.caPEM, err = os.ReadFile(filepath.Join(dir, caFile)); err != nil {
		return nil, fmt.Errorf("%w: remove %s to have all made anew", err, dir)
	}
	return c, nil
}

func (c *credentials) path(name string) string { return filepath.Join(c.dir, name) }

func (c *credentials) create() error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	ca, err := newAuthority()
	if err != nil {
		return err
	}
	c.caPEM = ca.pem
	serving := x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, net.ParseIP(kubernetesServiceIP)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	nodeClient := x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver-kubelet-client", Organization: []string{"system:masters"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	secret := make([]byte, 16)
	if _, err := rand.Read(secret); err != nil {
		return err
	}
	c.token = hex.EncodeToString(secret)
	serviceAccounts, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(c.path(caFile), ca.pem, 0o600),
		ca.issue(&serving, c.path(servingCert), c.path(servingKey)),
		ca.issue(&nodeClient, c.path(nodeClientCert), c.path(nodeClientKey)),
		writeKey(c.path(serviceAccountKey), serviceAccounts),
		os.WriteFile(c.path(tokenFile), []byte(c.token+",admin,admin,system:masters\n"), 0o600),
		os.WriteFile(c.path(secretFile), []byte(c.token), 0o600),
	)
}

// An authority signs certificates. Its key is never written: nothing is signed after the first start.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// lifetime of certificates: the folder of "make dev" may be kept for long, and it is on loopback.
const lifetime = 10 * 365 * 24 * time.Hour

func newAuthority() (*authority, error) {
	// Elliptic curves because a key of RSA 2048 costs a noticeable part of the start.
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "jobstream development control plane"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	if err := stamp(template); err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{cert: cert, key: key, pem: certPEM(der)}, nil
}

func (a *authority) issue(template *x509.Certificate, certFile, keyFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	if err := stamp(template); err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(certFile, certPEM(der), 0o600), writeKey(keyFile, key))
}

// stamp gives a certificate its number and its time. It begins an hour ago, for clocks that are set back.
func stamp(template *x509.Certificate) error {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	if err != nil {
		return err
	}
	now := time.Now()
	template.SerialNumber, template.NotBefore, template.NotAfter = serial, now.Add(-time.Hour), now.Add(lifetime)
	return nil
}

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}
