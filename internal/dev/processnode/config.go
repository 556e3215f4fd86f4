package processnode

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Config describes a node. Client or REST must be set; everything else has a default.
type Config struct {
	// Client talks to the API server. It should not limit its rate: every Pod costs a binding and up to two writes of its
	// status, as soon as they are due.
	Client kubernetes.Interface
	// REST is used if Client is nil: it becomes a client without rate limit that speaks protobuf.
	REST *rest.Config
	// Name of the Node; the default is "dev".
	Name string
	// Address is the loopback address of the Node, its Pods and its log server; the default is 127.0.0.1.
	Address string
	// Labels are added to the Node's.
	Labels map[string]string
	// DataDir is the folder in which the node creates its own, which is deleted when Run returns; the default is the system's folder
	// for temporary files. With a tmpfs, a busy machine starts twice as many short Pods as with a shared disk.
	DataDir string
	// MaxPods is the number of Pods that run at once; the default is 110, as on a real node, and 10,000 on a hollow one. Others
	// wait, unbound.
	MaxPods int
	// Hollow plays Pods instead of running processes; see DurationAnnotation.
	Hollow bool
	// NoBind leaves binding to another program: a scheduler, or another node of this kind.
	NoBind bool
	// Backoff delays the restarts of containers; the zero value is the kubelet's.
	Backoff Backoff
	// StatusDelay is how long a status may wait to be written together with later changes, unless it is the Pod's last; the default
	// is 50 ms. So a container that ends within the delay costs one write instead of two. Negative: none.
	StatusDelay time.Duration
	// Log is the logger; nil discards everything.
	Log *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.Client == nil && c.REST == nil {
		return c, errors.New("processnode: no API server: set Client or REST")
	}
	if c.Client == nil {
		r := rest.CopyConfig(c.REST)
		r.QPS = -1
		r.ContentType, r.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
		r.UserAgent = "jobstream-processnode"
		client, err := kubernetes.NewForConfig(r)
		if err != nil {
			return c, fmt.Errorf("processnode: cannot make a client: %w", err)
		}
		c.Client = client
	}
	if c.Name == "" {
		c.Name = "dev"
	}
	if c.Address == "" {
		c.Address = "127.0.0.1"
	}
	if ip := net.ParseIP(c.Address); ip == nil || !ip.IsLoopback() {
		return c, fmt.Errorf("processnode: address %q is not a loopback address: logs are served without authentication, "+
			"so the node must not be reachable from elsewhere", c.Address)
	}
	if c.MaxPods < 0 {
		return c, fmt.Errorf("processnode: MaxPods is %d: must not be negative", c.MaxPods)
	}
	if c.MaxPods == 0 {
		c.MaxPods = 110
		if c.Hollow {
			c.MaxPods = 10_000
		}
	}
	if c.StatusDelay == 0 {
		c.StatusDelay = 50 * time.Millisecond
	}
	c.StatusDelay = max(0, c.StatusDelay)
	c.Backoff = c.Backoff.withDefaults()
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Log = c.Log.With("node", c.Name)
	return c, nil
}
