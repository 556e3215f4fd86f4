package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/jobstream/jobstream/internal/dev/port"
)

const (
	apiServer = "kube-apiserver"

	// Services get addresses that are not routed: there is no kube-proxy. The first one is the API server's own.
	serviceRange        = "10.0.0.0/24"
	kubernetesServiceIP = "10.0.0.1"

	auditPolicyFile = "audit-policy.yaml"

	// etcdTimeout lets etcd close its database. The others keep no state, and at SIGTERM the API server would
	// wait for the end of every watch.
	etcdTimeout = 5 * time.Second
)

// statusWritesPolicy logs one line per write of a Job's status: enough to see who wrote, when, and with what result.
const statusWritesPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [update, patch]
  resources: [{group: batch, resources: [jobs/status]}]
- level: None
`

// startEtcd starts etcd on plain HTTP, because TLS would cost CPU that distorts benchmarks. So every user of this machine can
// reach the data: this is for development, not for secrets.
func (cp *ControlPlane) startEtcd(ctx context.Context) error {
	client := cp.EtcdURL()
	peer := "http://" + loopback(0) // for other members, of which there are none
	args := []string{
		"--name=default",
		"--data-dir=" + cp.folder.Path("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer,
		// The default of 2 GiB ends a benchmark of a hundred thousand Pods with "database space exceeded".
		"--quota-backend-bytes=" + strconv.Itoa(8<<30),
	}
	if cp.config.UnsafeNoFsync {
		args = append(args, "--unsafe-no-fsync")
	}
	return cp.startProgram(ctx, &cp.etcd, "etcd", append(args, cp.config.EtcdFlags...), client+"/health")
}

// StartAPIServer starts the API server after StopAPIServer, on the same port, and returns when it serves.
func (cp *ControlPlane) StartAPIServer(ctx context.Context) error {
	args := []string{
		"--etcd-servers=" + cp.EtcdURL(),
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(cp.ports.api),
		"--tls-cert-file=" + cp.creds.path(servingCert),
		"--tls-private-key-file=" + cp.creds.path(servingKey),
		// Endpoints may not be loopback addresses, so the server would fail to publish its own again and again.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + serviceRange,
		"--token-auth-file=" + cp.creds.path(tokenFile),
		"--authorization-mode=RBAC",
		// Pods need no ServiceAccount to exist first, and nodes here mount no tokens.
		"--disable-admission-plugins=ServiceAccount",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + cp.creds.path(serviceAccountKey),
		"--service-account-signing-key-file=" + cp.creds.path(serviceAccountKey),
		// How it reaches a node for logs: see the package documentation.
		"--kubelet-preferred-address-types=InternalIP",
		"--kubelet-client-certificate=" + cp.creds.path(nodeClientCert),
		"--kubelet-client-key=" + cp.creds.path(nodeClientKey),
		"--allow-privileged=true",
	}
	if cp.config.AuditLog {
		args = append(args, "--audit-log-path="+cp.AuditLog(), "--audit-policy-file="+cp.folder.Path(auditPolicyFile))
	}
	err := cp.startProgram(ctx, &cp.api, apiServer, append(args, cp.config.APIServerFlags...), cp.URL()+"/readyz")
	if err != nil {
		return err
	}
	// The server is ready before the default namespace exists, which nearly every user needs first.
	return cp.waitFor(ctx, cp.api, cp.URL()+"/api/v1/namespaces/default")
}

// StopAPIServer ends the API server at once, as a crash would. etcd and the others stay.
func (cp *ControlPlane) StopAPIServer() error { return cp.stopProgram(&cp.api, 0) }

// StartControllerManager starts kube-controller-manager and returns when it is healthy. Start does it if
// Config.ControllerManager says so.
func (cp *ControlPlane) StartControllerManager(ctx context.Context) error {
	args := []string{
		"--kubeconfig=" + cp.Kubeconfig(),
		"--leader-elect=false", // there is one, and waiting for a lease would double the time of a start
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(cp.ports.kcm),
		"--tls-cert-file=" + cp.creds.path(servingCert),
		"--tls-private-key-file=" + cp.creds.path(servingKey),
		"--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
		"--service-account-private-key-file=" + cp.creds.path(serviceAccountKey),
		"--root-ca-file=" + cp.creds.path(caFile),
		"--service-cluster-ip-range=" + serviceRange,
	}
	return cp.startProgram(ctx, &cp.kcm, "kube-controller-manager",
		append(args, cp.config.ControllerManagerFlags...), cp.ControllerManagerURL()+"/healthz")
}

// StopControllerManager ends kube-controller-manager at once, as a crash would.
func (cp *ControlPlane) StopControllerManager() error { return cp.stopProgram(&cp.kcm, 0) }

// startProgram starts one program, unless it runs, and waits until url answers.
func (cp *ControlPlane) startProgram(ctx context.Context, slot **process, name string, args []string, url string) error {
	cp.mu.Lock()
	if cp.stopped {
		cp.mu.Unlock()
		return fmt.Errorf("start %s: the control plane has been stopped", name)
	}
	if (*slot).running() {
		cp.mu.Unlock()
		return nil
	}
	var env []string
	if cp.config.GCPercent != 0 {
		env = append(os.Environ(), "GOGC="+strconv.Itoa(cp.config.GCPercent))
	}
	unasked := cp.reportDeath
	if slot == &cp.api {
		unasked = cp.apiServerEnded
	}
	p, err := run(filepath.Join(cp.assets, name), args, env, cp.LogFile(name), unasked)
	if err == nil {
		*slot = p
	}
	cp.mu.Unlock()
	if err != nil {
		return err
	}
	return cp.waitFor(ctx, p, url)
}

// reportDeath keeps the first unexpected end: later ones are its consequences.
func (cp *ControlPlane) reportDeath(err error) {
	select {
	case cp.died <- err:
	default:
	}
}

func (cp *ControlPlane) stopProgram(slot **process, timeout time.Duration) error {
	cp.mu.Lock()
	p := *slot
	cp.mu.Unlock()
	return p.stop(timeout)
}

// stopAll ends clients before servers.
func (cp *ControlPlane) stopAll() error {
	timeout := etcdTimeout
	if cp.folder.Temporary() {
		timeout = 0 // the database is not needed again
	}
	return errors.Join(cp.StopControllerManager(), cp.StopAPIServer(), cp.stopProgram(&cp.etcd, timeout))
}

// ports are the loopback ports of one control plane.
type ports struct{ etcd, api, kcm int }

// choosePorts finds free ports. Another program may take one before it is used: Start then retries.
func choosePorts(api int) (ports, error) {
	free := make([]int, 3)
	for i := range free {
		var err error
		if free[i], err = port.Free(); err != nil {
			return ports{}, err
		}
	}
	if api == 0 {
		api = free[1]
	}
	return ports{etcd: free[0], api: api, kcm: free[2]}, nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// writeKubeconfig writes a kubeconfig that stands alone, so that it can be copied.
func writeKubeconfig(path string, config *rest.Config) error {
	const name = "jobstream"
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	kubeconfig.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	kubeconfig.CurrentContext = name
	return clientcmd.WriteToFile(*kubeconfig, path)
}
