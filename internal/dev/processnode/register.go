package processnode

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"time"

	coordv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const (
	// registerRetry is the wait for an API server that does not respond yet.
	registerRetry = 500 * time.Millisecond
	// leaseSeconds and leasePeriod are the kubelet's: the node controller gives a silent node up after 40 s.
	leaseSeconds = 40
	leasePeriod  = 10 * time.Second
	// statusPeriod is how often the Node's own status is written; the lease is the sign of life. It is also how long a deleted Node
	// stays away.
	statusPeriod = time.Minute
)

// register creates the Node, or takes it over from a former run, and reports which.
func (n *Node) register(ctx context.Context) (uid types.UID, existed bool, err error) {
	nodes := n.cfg.Client.CoreV1().Nodes()
	for {
		node, err := nodes.Create(ctx, n.object(), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			existed = true
			node, err = n.takeOver(ctx)
		}
		switch {
		case err == nil:
			return node.UID, existed, nil
		case ctx.Err() != nil:
			return "", false, nil //nolint:nilerr // stopped: not an error
		case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err):
			return "", false, fmt.Errorf("processnode: cannot register node %s: %w", n.cfg.Name, err)
		}
		n.cfg.Log.Debug("cannot register yet, will try again", "err", err)
		pause(ctx, registerRetry)
	}
}

// takeOver overwrites the former run's data, above all the port of the log server.
func (n *Node) takeOver(ctx context.Context) (*v1.Node, error) {
	nodes := n.cfg.Client.CoreV1().Nodes()
	node, err := nodes.Get(ctx, n.cfg.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	want := n.object()
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	maps.Copy(node.Labels, want.Labels)
	if node, err = nodes.Update(ctx, node, metav1.UpdateOptions{}); err != nil {
		return nil, err
	}
	node.Status = want.Status
	return nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
}

// object returns the Node to register.
func (n *Node) object() *v1.Node {
	now := metav1.Now()
	condition := func(kind v1.NodeConditionType, status v1.ConditionStatus, reason, message string) v1.NodeCondition {
		return v1.NodeCondition{
			Type: kind, Status: status, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now,
		}
	}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.cfg.Name, Labels: n.labels()},
		Status: v1.NodeStatus{
			Capacity: n.capacity(), Allocatable: n.capacity(),
			// No Hostname: the API server would prefer it to the address and ask the machine's resolver for it.
			Addresses:       []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: n.cfg.Address}},
			DaemonEndpoints: v1.NodeDaemonEndpoints{KubeletEndpoint: v1.DaemonEndpoint{Port: n.server.port()}},
			NodeInfo: v1.NodeSystemInfo{
				OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH, KernelVersion: kernelVersion(), OSImage: "this machine",
				KubeletVersion: "v0.0.0-processnode", ContainerRuntimeVersion: "process://1",
			},
			Conditions: []v1.NodeCondition{
				condition(v1.NodeReady, v1.ConditionTrue, "ProcessNodeReady", "the node runs containers as processes"),
				condition(v1.NodeMemoryPressure, v1.ConditionFalse, "NotMeasured", "the development node does not measure it"),
				condition(v1.NodeDiskPressure, v1.ConditionFalse, "NotMeasured", "the development node does not measure it"),
				condition(v1.NodePIDPressure, v1.ConditionFalse, "NotMeasured", "the development node does not measure it"),
			},
		},
	}
}

func (n *Node) labels() map[string]string {
	labels := maps.Clone(n.cfg.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1.LabelHostname] = n.cfg.Name
	labels[v1.LabelOSStable] = runtime.GOOS
	labels[v1.LabelArchStable] = runtime.GOARCH
	return labels
}

func (n *Node) capacity() v1.ResourceList {
	return v1.ResourceList{
		v1.ResourceCPU:              *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI),
		v1.ResourceMemory:           *resource.NewQuantity(machineMemory(), resource.BinarySI),
		v1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
		v1.ResourcePods:             *resource.NewQuantity(int64(n.cfg.MaxPods), resource.DecimalSI),
	}
}

// heartbeat renews the node's lease until ctx ends.
func (n *Node) heartbeat(ctx context.Context, uid types.UID) error {
	nextStatus := time.Now().Add(statusPeriod)
	for ctx.Err() == nil {
		if err := n.renew(ctx, uid); err != nil && ctx.Err() == nil {
			n.cfg.Log.Warn("cannot renew the node's lease, will try again", "err", err)
		}
		if time.Now().After(nextStatus) {
			nextStatus = time.Now().Add(statusPeriod)
			var err error
			if uid, _, err = n.register(ctx); err != nil {
				return err
			}
		}
		for _, lost := range n.slots.stale(time.Now().Add(-time.Minute), n.pods.known) {
			n.slots.give(lost)
		}
		pause(ctx, leasePeriod)
	}
	return nil
}

// renew renews the node's lease, and creates it if it is missing.
func (n *Node) renew(ctx context.Context, uid types.UID) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	leases := n.cfg.Client.CoordinationV1().Leases(v1.NamespaceNodeLease)
	now := metav1.NowMicro()
	lease, err := leases.Get(ctx, n.cfg.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: n.cfg.Name, OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "Node", Name: n.cfg.Name, UID: uid},
			}},
			Spec: coordv1.LeaseSpec{
				HolderIdentity: &n.cfg.Name, LeaseDurationSeconds: ptr.To[int32](leaseSeconds), RenewTime: &now,
			},
		}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = &n.cfg.Name, &now
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
