package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jobstream/jobstream/deploy"
	"github.com/jobstream/jobstream/internal/apiserver"
	"github.com/jobstream/jobstream/internal/app"
	"github.com/jobstream/jobstream/internal/cluster"
	"github.com/jobstream/jobstream/internal/finding"
)

const (
	// installTimeout is for an API server that has much to do: it serves a new kind within a second, usually.
	installTimeout = time.Minute
	// grant says how to get the permissions that are missing.
	grant = "use a kubeconfig of an administrator (--kubeconfig, --context), or have one bind the ClusterRoles of deploy/base/trigger-rbac.yaml and deploy/base/reconciler-rbac.yaml to your user"
)

// found is what we know of the cluster before we start.
type found struct {
	context, address string
	version          version.Info
	schedules        bool // it knows ScheduledJobs
}

// client makes one for the API server. It sends no request.
func client(o app.Options) (kubernetes.Interface, *rest.Config, error) {
	c, config, err := cluster.NewClient(cluster.ClientConfig{Kubeconfig: o.Kubeconfig, Context: o.Context, UserAgent: program + "/" + app.Version()})
	if err != nil {
		return nil, nil, &app.Fatal{Cannot: "start", Err: err,
			Remedy: "name a kubeconfig with --kubeconfig or KUBECONFIG, or put it where kubectl looks, ~/.kube/config; --context (" + app.EnvName("context") + ") chooses one of its contexts"}
	}
	return c, config, nil
}

// check looks whether this is a cluster that we can work for, and may, and installs the kind ScheduledJob if the user asks for it.
func check(ctx context.Context, s *settings, c kubernetes.Interface, config *rest.Config) (f found, err error) {
	f.context, f.address = cluster.ClientConfig{Kubeconfig: s.Kubeconfig, Context: s.Context}.CurrentContext(), config.Host
	if f.version, err = cluster.Check(ctx, c, slog.New(slog.DiscardHandler)); err != nil {
		return f, &app.Fatal{Cannot: "start", Err: err,
			Remedy: `try "kubectl version" with the same kubeconfig; --kubeconfig (` + app.EnvName("kubeconfig") + ") and --context choose another"}
	}
	if !apiserver.ManagedByIsFinal(f.version) {
		return f, &app.Fatal{Cannot: "start", Err: fmt.Errorf("the API server at %s is %s, and Kubernetes 1.35 or newer is needed: only there it is sure to keep spec.managedBy of Jobs", config.Host, f.version.GitVersion),
			Remedy: "upgrade the cluster; with 1.32 or newer and the feature gate JobManagedBy, jobstream-trigger and jobstream-reconciler will do"}
	}
	if s.installCRDs {
		if err := install(ctx, config); err != nil {
			return f, err
		}
	}
	i := cluster.Inspection{Client: c, Config: config, Namespaces: s.Namespaces, Roles: [][]byte{deploy.TriggerRBAC, deploy.ReconcilerRBAC}}
	if err := permitted(ctx, i, s.Log); err != nil {
		return f, err
	}
	if f.schedules, err = apiserver.ServesScheduledJobs(c); err != nil { //nolint:contextcheck // discovery takes none
		return f, &app.Fatal{Cannot: "ask the API server what it knows", Err: err, Remedy: `try "kubectl api-resources" with the same kubeconfig`}
	}
	return f, nil
}

// permitted fails where we may not do what Jobs need. Where the API server does not tell, we shall see.
func permitted(ctx context.Context, i cluster.Inspection, log *slog.Logger) error {
	denied, _, err := i.Denied(ctx)
	if err != nil {
		log.Warn("our permissions cannot be asked about", "error", err)
		return ctx.Err()
	}
	if missing := denied[finding.Fail]; len(missing) > 0 {
		return &app.Fatal{Cannot: "start", Err: errors.New("the API server does not let us " + strings.Join(missing, ", ")), Remedy: grant}
	}
	if missing := denied[finding.Warn]; len(missing) > 0 {
		log.Warn("the API server does not let us do all that ScheduledJobs need; Jobs work", "denied", strings.Join(missing, ", "), "remedy", grant)
	}
	return nil
}

// install makes the cluster know ScheduledJobs.
func install(ctx context.Context, config *rest.Config) error {
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	err := cluster.InstallScheduledJobs(ctx, config)
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return &app.Fatal{Cannot: "install the kind ScheduledJob", Err: err,
			Remedy: `leave out --install-crds, and have an administrator do "kubectl apply -k deploy/crd": Jobs work without it`}
	}
	return &app.Fatal{Cannot: "install the kind ScheduledJob", Err: err,
		Remedy: `try "kubectl apply -k deploy/crd", or leave out --install-crds: Jobs work without it`}
}
