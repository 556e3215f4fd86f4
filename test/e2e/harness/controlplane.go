package harness

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/jobstream/jobstream/internal/cluster"
	"github.com/jobstream/jobstream/internal/dev/controlplane"
	"github.com/jobstream/jobstream/internal/dev/processnode"
)

// auditPolicy logs what the tests count: writes of a Job's status, creations of Pods, and removals of their finalizers.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [update, patch]
  resources: [{group: batch, resources: [jobs/status]}]
- level: Metadata
  verbs: [create, patch]
  resources: [{group: "", resources: [pods]}]
- level: None
`

func (s *System) startControlPlane(ctx context.Context) error {
	c := controlplane.Config{ControllerManager: true, UnsafeNoFsync: true, GCPercent: s.config.GCPercent,
		ControllerManagerFlags: append([]string{s.config.controllers()}, s.config.ControllerManagerFlags...)}
	if !s.config.Unaudited {
		c.AuditLog, c.AuditPolicy = true, auditPolicy
	}
	if s.config.Deployed {
		c.AuditPolicy = auditPrograms(auditPolicy)
		c.APIServerFlags = []string{"--enable-admission-plugins=OwnerReferencesPermissionEnforcement"}
	}
	cp, err := controlplane.Start(ctx, c)
	if err != nil {
		return err
	}
	s.onStop(func() error {
		select {
		case err := <-cp.Died():
			return errors.Join(fmt.Errorf("the control plane broke: %w", err), cp.Stop())
		default:
			return cp.Stop()
		}
	})
	s.ControlPlane, s.REST = cp, cp.RESTConfig()
	s.REST.ContentType = runtime.ContentTypeProtobuf
	s.REST.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	if s.Client, err = kubernetes.NewForConfig(s.REST); err != nil {
		return err
	}
	if !s.config.Bare {
		if err := cluster.InstallScheduledJobs(ctx, s.REST); err != nil {
			return err
		}
	}
	s.kubeconfig = cp.Kubeconfig()
	if s.config.Proxied {
		return s.startProxy()
	}
	return nil
}

// controllers is the flag of kube-controller-manager that chooses its controllers.
func (c Config) controllers() string {
	if len(c.Controllers) > 0 {
		return "--controllers=" + strings.Join(c.Controllers, ",")
	}
	controllers := "--controllers=*"
	if c.NoBuiltInJobs {
		controllers += ",-job-controller"
	}
	if c.NoBuiltInTTL {
		controllers += ",-ttl-after-finished-controller"
	}
	return controllers
}

func (s *System) startNode(ctx context.Context) error {
	for range s.config.Nodes {
		if _, err := s.AddNode(ctx); err != nil {
			return err
		}
	}
	if s.config.Nodes > 0 {
		return nil
	}
	log, err := os.OpenFile(s.path("node.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	node, err := processnode.New(processnode.Config{
		Client: s.Client, DataDir: s.config.Dir, Log: slog.New(slog.NewTextHandler(log, nil)),
		Hollow: s.config.HollowPods > 0, MaxPods: s.config.HollowPods,
	})
	if err != nil {
		return err
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- node.Run(life) }()
	s.onStop(func() error { end(); return errors.Join(<-ended, log.Close()) })
	select {
	case <-node.Registered():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the node did not register: %w", ctx.Err())
	}
}
