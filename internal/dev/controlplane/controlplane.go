// Package controlplane runs a real Kubernetes control plane on a bare machine: etcd, kube-apiserver and, on
// request, kube-controller-manager, as ordinary child processes on loopback ports. No container engine, no root.
//
//	cp, err := controlplane.Start(ctx, controlplane.Config{ControllerManager: true})
//	defer cp.Stop()
//	client, err := kubernetes.NewForConfig(cp.RESTConfig())
//
// Everything it writes is below one folder: etcd's data, certificates, logs, the kubeconfig of an administrator.
// A temporary folder is removed by Stop; a folder that was given keeps the cluster's state for the next Start.
//
// It leaves nothing behind. Stop ends the processes; and where Stop is never reached, because the program was
// killed with -9, panicked or was interrupted, the kernel kills them with it (internal/child tells how). A temporary
// folder that was orphaned that way is removed by the next Start.
//
// There is no kubelet and no scheduler: Pods stay Pending until a program plays the node, as internal/dev/processnode
// does. The API server reaches a node's log endpoint on loopback too: pods/log (also attach, exec, port-forward)
// dials the first InternalIP in node.status.addresses at node.status.daemonEndpoints.kubeletEndpoint.port without
// any filter for loopback addresses, over HTTPS, does not verify the node's certificate (there is no
// --kubelet-certificate-authority) and presents a client certificate that is signed by CAFile. So a development
// node listens on 127.0.0.1 with a self-signed certificate and has that address in its status.
//
// The programs come from "make controlplane"; see the package assets for where they are looked for.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/jobstream/jobstream/internal/dev/controlplane/assets"
	"github.com/jobstream/jobstream/internal/folder"
)

// owner is the owner's name in the lock of a control plane's folder.
const owner = "jobstream-controlplane"

// startTimeout bounds one component's way to readiness. A start takes two to four seconds on an idle machine;
// this is for two cores that also compile, run other control planes, and have hundreds of clients that all come back when a killed
// API server does.
const startTimeout = 5 * time.Minute

// RareGC is a GCPercent for tests with few objects: an API server starts with a fifth less work of the processors, and takes 100 MB more.
const RareGC = 400

// Config configures a control plane. The zero value is a usable API server in a temporary folder.
type Config struct {
	// Dir holds all files and keeps the cluster's state between runs. Empty: a temporary folder, removed by Stop.
	Dir string
	// Assets is the folder of the programs. Empty: Assets() finds it.
	Assets string
	// Port of the API server. Zero: a free one.
	Port int
	// UnsafeNoFsync lets etcd skip fsync: several times faster, and safe against anything but a crash of the
	// machine. For tests.
	UnsafeNoFsync bool
	// GCPercent is GOGC of the programs; zero leaves it to the environment.
	GCPercent int
	// ControllerManager starts kube-controller-manager too, with its default controllers (garbage collector,
	// TTL after finished, Job, CronJob, namespaces ...).
	ControllerManager bool
	// AuditLog makes the API server write an audit log (ControlPlane.AuditLog) by AuditPolicy.
	AuditLog bool
	// AuditPolicy is the YAML of an audit Policy. Empty: metadata of every write of a Job's status.
	AuditPolicy string
	// EtcdFlags, APIServerFlags and ControllerManagerFlags are appended to the flags of the programs, as in
	// []string{"--controllers=*,-job-controller"}.
	EtcdFlags, APIServerFlags, ControllerManagerFlags []string
}

// Validate returns an error for settings that cannot work, before anything is started.
func (c Config) Validate() error {
	if c.Port < 0 || c.Port > 65535 {
		return fmt.Errorf("controlplane: port %d is not a port: use 0 for a free one, or 1 to 65535", c.Port)
	}
	if c.AuditPolicy != "" && !c.AuditLog {
		return errors.New("controlplane: AuditPolicy without AuditLog has no effect: set AuditLog")
	}
	return nil
}

// A ControlPlane is a running cluster without nodes. Its methods may be called from any goroutine.
type ControlPlane struct {
	config Config
	assets string
	folder *folder.Folder
	creds  *credentials
	ports  ports
	died   chan error

	mu       sync.Mutex // guards what follows
	etcd     *process
	api      *process
	kcm      *process
	serves   bool // Start has succeeded
	stopped  bool
	restarts int // of the API server after a known panic
	stopErr  error
	stopOnce sync.Once
}

// Assets returns the folder that holds the control plane's programs: KUBEBUILDER_ASSETS, else
// JOBSTREAM_CONTROLPLANE_DIR, else the cache folder that "make controlplane" fills. The error names the remedy.
func Assets() (dir string, err error) { return assets.Find() }

// Start starts a control plane and returns when it serves. ctx bounds the start only: a control plane runs until
// Stop, or until this program ends.
func Start(ctx context.Context, config Config) (*ControlPlane, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	dir := config.Assets
	if dir == "" {
		found, err := Assets()
		if err != nil {
			return nil, err
		}
		dir = found
	} else if missing := assets.Missing(dir); len(missing) > 0 {
		return nil, fmt.Errorf("controlplane: %s has no %v: run \"make controlplane\" and leave Assets empty", dir, missing)
	}
	f, err := folder.Open(config.Dir, owner)
	if err != nil {
		return nil, err
	}
	cp := &ControlPlane{config: config, assets: dir, folder: f, died: make(chan error, 1)}
	if err := cp.start(ctx); err != nil {
		return nil, errors.Join(err, cp.Stop())
	}
	cp.mu.Lock()
	defer cp.mu.Unlock()
	cp.serves = true
	return cp, nil
}

// start tries again when another program took a port between its choice and its use. It never replaces Config.Port.
func (cp *ControlPlane) start(ctx context.Context) error {
	if err := cp.prepare(); err != nil {
		return err
	}
	const tries = 3 // a lost race is rare, and lost three times in a row means something else
	var err error
	for range tries {
		if cp.ports, err = choosePorts(cp.config.Port); err != nil {
			return err
		}
		err = cp.startAll(ctx)
		var taken *portTaken
		if !errors.As(err, &taken) || cp.config.Port != 0 && taken.program == apiServer {
			return err
		}
		if err := cp.stopAll(); err != nil {
			return err
		}
		select {
		case <-cp.died: //nolint:errcheck // the expected end after the lost race
		default:
		}
	}
	return err
}

// prepare writes the files that the programs read. In a folder that is used again, credentials stay the same.
func (cp *ControlPlane) prepare() error {
	creds, err := loadOrCreateCredentials(cp.folder.Path("pki"))
	if err != nil {
		return err
	}
	cp.creds = creds
	if err := os.RemoveAll(cp.folder.Path("logs")); err != nil { // from the previous run
		return err
	}
	if !cp.config.AuditLog {
		return nil
	}
	policy := cp.config.AuditPolicy
	if policy == "" {
		policy = statusWritesPolicy
	}
	return os.WriteFile(cp.folder.Path(auditPolicyFile), []byte(policy), 0o600)
}

func (cp *ControlPlane) startAll(ctx context.Context) error {
	if err := cp.startEtcd(ctx); err != nil {
		return err
	}
	if err := cp.StartAPIServer(ctx); err != nil {
		return err
	}
	if err := writeKubeconfig(cp.Kubeconfig(), cp.RESTConfig()); err != nil {
		return err
	}
	if cp.config.ControllerManager {
		return cp.StartControllerManager(ctx)
	}
	return nil
}

// Stop ends all processes and removes the folder if it was a temporary one. It may be called more than once.
func (cp *ControlPlane) Stop() error {
	cp.stopOnce.Do(func() {
		cp.mu.Lock()
		cp.stopped = true
		cp.mu.Unlock()
		cp.stopErr = errors.Join(cp.stopAll(), cp.folder.Close())
	})
	return cp.stopErr
}

// Dir is the folder of everything.
func (cp *ControlPlane) Dir() string { return cp.folder.Dir() }

// Kubeconfig is the path of an administrator's kubeconfig.
func (cp *ControlPlane) Kubeconfig() string { return cp.folder.Path("kubeconfig") }

// RESTConfig returns an administrator's client configuration, without a client-side rate limit: the server's
// priority and fairness does that better. For another identity, set Impersonate.
func (cp *ControlPlane) RESTConfig() *rest.Config {
	return &rest.Config{
		Host:            cp.URL(),
		BearerToken:     cp.creds.token,
		TLSClientConfig: rest.TLSClientConfig{CAData: cp.creds.caPEM},
		QPS:             -1,
	}
}

// URL of the API server. The administrator may read its /metrics.
func (cp *ControlPlane) URL() string { return "https://" + loopback(cp.ports.api) }

// EtcdURL is where etcd serves everyone on this machine: for tests that must see what the API server has stored while it was down.
func (cp *ControlPlane) EtcdURL() string { return "http://" + loopback(cp.ports.etcd) }

// ControllerManagerURL is where kube-controller-manager serves /healthz and /metrics, to anyone on this machine.
func (cp *ControlPlane) ControllerManagerURL() string { return "https://" + loopback(cp.ports.kcm) }

// AuditLog is the path of the audit log, one JSON event a line. It is there if Config.AuditLog asked for it.
func (cp *ControlPlane) AuditLog() string { return cp.folder.Path("audit.log") }

// CAFile is the certificate of the authority that signed the API server's serving certificate and the client
// certificate that it presents to nodes.
func (cp *ControlPlane) CAFile() string { return filepath.Join(cp.folder.Path("pki"), caFile) }

// LogFile is the path of what a program ("etcd", "kube-apiserver", "kube-controller-manager") printed.
func (cp *ControlPlane) LogFile(program string) string { return cp.folder.Path("logs", program+".log") }

// Died receives the first process that ended unexpectedly, with the end of its output. After a known panic of its own, which no client
// has caused, the API server is started again instead, a few times.
func (cp *ControlPlane) Died() <-chan error { return cp.died }
