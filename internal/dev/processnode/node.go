package processnode

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// Node is one development node. Make it with New, and Run it once.
type Node struct {
	cfg        Config
	slots      *slots
	logs       *logs
	pods       *pods
	server     *server
	registered chan struct{}
}

// New checks the configuration. It sends no request.
func New(cfg Config) (*Node, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Node{cfg: cfg, slots: newSlots(cfg.MaxPods), logs: &logs{}, registered: make(chan struct{})}, nil
}

// Registered is closed as soon as the Node is known to the API server and takes Pods.
func (n *Node) Registered() <-chan struct{} { return n.registered }

// Run runs the node: it registers, waiting for the API server if necessary, and runs Pods until ctx ends. Then it kills every
// process, removes every file, and returns nil. The Node object and its Pods stay; the next run of a node with this name reports
// the Pods as failed.
func (n *Node) Run(ctx context.Context) error {
	dir, err := n.folder()
	if err != nil {
		return err
	}
	defer removeAll(dir)
	launcher, err := n.newLauncher(dir)
	if err != nil {
		return err
	}
	defer launcher.close()
	// The server must listen before the API server learns of its port.
	if n.server, err = newServer(n.cfg.Address, n.findLog, n.cfg.Log); err != nil {
		return fmt.Errorf("processnode: %w", err)
	}
	// client-go logs what it also returns as an error, and treats a cancelled context as one.
	group, ctx := errgroup.WithContext(klog.NewContext(ctx, klog.Logger{}))
	n.pods = n.newPods(ctx, launcher)
	group.Go(func() error { return n.server.run(ctx) })
	group.Go(func() error { return n.live(ctx, group, launcher) })
	err = group.Wait()
	n.pods.work.Wait()
	launcher.clear()
	return err
}

// live registers the node and begins to run its Pods.
func (n *Node) live(ctx context.Context, group *errgroup.Group, l launcher) error {
	uid, existed, err := n.register(ctx)
	if err != nil || ctx.Err() != nil {
		return err
	}
	l.setMark(string(uid))
	if existed {
		l.clear()
	}
	n.pods.orphaned = existed
	n.cfg.Log.Info("the node is registered", "slots", n.cfg.MaxPods, "hollow", n.cfg.Hollow, "logs", n.server.listener.Addr())
	group.Go(func() error { return n.heartbeat(ctx, uid) })
	group.Go(func() error {
		watch(ctx, n.cfg.Client, n.cfg.Log, boundTo(n.cfg.Name), n.pods.sink())
		return nil
	})
	// A Pod that this run has bound must not be mistaken for one of a former run: so bind only after the first list.
	select {
	case <-n.pods.synced:
	case <-ctx.Done():
		return nil
	}
	close(n.registered)
	if n.cfg.NoBind {
		return nil
	}
	b := newBinder(n.cfg.Client, n.cfg.Name, n.labels(), n.slots, n.cfg.Log)
	group.Go(func() error { return b.run(ctx) })
	group.Go(func() error {
		watch(ctx, n.cfg.Client, n.cfg.Log, unbound(), b.sink())
		return nil
	})
	return nil
}

func (n *Node) newPods(ctx context.Context, l launcher) *pods {
	writes := newSlots(writesAtOnce)
	fresh := func(o *v1.Pod) *pod {
		p := &pod{
			uid: o.UID, name: nameOf(o), client: n.cfg.Client, launcher: l, slots: n.slots, writes: writes, backoff: n.cfg.Backoff,
			delay: n.cfg.StatusDelay, ip: n.cfg.Address, log: n.cfg.Log, wake: make(chan struct{}, 1), object: o,
			containers: containersOf(&o.Spec), started: time.Now(),
		}
		if t := o.Status.StartTime; t != nil {
			p.started = t.Time
		}
		p.handles = make([]handle, len(p.containers))
		return p
	}
	return &pods{
		node: n.cfg.Name, fresh: fresh, over: l.forget, ctx: ctx, synced: make(chan struct{}),
		byUID: map[types.UID]*entry{}, byName: map[types.NamespacedName]types.UID{}, departed: map[types.UID]bool{},
	}
}

// folder creates the folder of this run, and replaces that of a run that could not clean up.
func (n *Node) folder() (string, error) {
	if n.cfg.DataDir == "" {
		dir, err := os.MkdirTemp("", "processnode-")
		if err != nil {
			return "", fmt.Errorf("processnode: cannot make a data folder: %w", err)
		}
		return dir, nil
	}
	base, err := filepath.Abs(n.cfg.DataDir)
	if err != nil {
		return "", fmt.Errorf("processnode: data folder: %w", err)
	}
	dir := filepath.Join(base, "processnode-"+n.cfg.Name)
	removeAll(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("processnode: cannot make a data folder: %w", err)
	}
	return dir, nil
}

// findLog finds a container's log for the server.
func (n *Node) findLog(namespace, name, container string, previous bool) (*logFile, error) {
	uid, err := n.pods.find(namespace, name)
	if err != nil {
		return nil, err
	}
	return n.logs.find(uid, container, previous), nil
}
