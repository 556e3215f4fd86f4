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
	"github.com/jobstream/jobstream/internal/flags"
)

const (
	// installTimeout allows for a busy API server; usually it serves a new kind within a second.
	installTimeout = time.Minute
	// grant is the remedy for missing permissions.
	grant = "use a kubeconfig of an administrator (--kubeconfig, --context), or have one bind the ClusterRoles of deploy/base/trigger-rbac.yaml and deploy/base/reconciler-rbac.yaml to your user"
)

// found describes the cluster.
type found struct {
	context, address string
	version          version.Info
	schedules        bool // it serves ScheduledJobs
}

// client makes a client for the API server. It sends no request.
func client(o app.Options) (kubernetes.Interface, *rest.Config, error) {
	c, config, err := cluster.NewClient(cluster.ClientConfig{Kubeconfig: o.Kubeconfig, Context: o.Context, UserAgent: program + "/" + app.Version()})
	if err != nil {
		return nil, nil, &app.Fatal{Cannot: "start", Err: err,
			Remedy: "name a kubeconfig with --kubeconfig or KUBECONFIG, or put it where kubectl looks, ~/.kube/config; --context (" + flags.EnvName("context") + ") chooses one of its contexts"}
	}
	return c, config, nil
}

// check returns an error unless jobstream can work for this cluster, and has the permissions to. It installs the kind
// ScheduledJob if the user asks for it.
func check(ctx context.Context, s *settings, c kubernetes.Interface, config *rest.Config) (f found, err error) {
	f.context, f.address = cluster.ClientConfig{Kubeconfig: s.Kubeconfig, Context: s.Context}.CurrentContext(), config.Host
	if f.version, err = cluster.Check(ctx, c, slog.New(slog.DiscardHandler)); err != nil {
		return f, &app.Fatal{Cannot: "start", Err: err,
			Remedy: `try "kubectl version" with the same kubeconfig; --kubeconfig (` + flags.EnvName("kubeconfig") + ") and --context choose another"}
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
		return f, &app.Fatal{Cannot: "list the kinds of the API server", Err: err, Remedy: `try "kubectl api-resources" with the same kubeconfig`}
	}
	return f, nil
}

// permitted returns an error if permissions that Jobs need are missing. If the API server does not answer, it only logs a
// warning.
func permitted(ctx context.Context, i cluster.Inspection, log *slog.Logger) error {
	denied, _, err := i.Denied(ctx)
	if err != nil {
		log.Warn("the permissions of this program cannot be checked", "error", err)
		return ctx.Err()
	}
	if missing := denied[finding.Fail]; len(missing) > 0 {
		return &app.Fatal{Cannot: "start", Err: errors.New("the API server does not allow jobstream to " + strings.Join(missing, ", ")), Remedy: grant}
	}
	if missing := denied[finding.Warn]; len(missing) > 0 {
		log.Warn("the API server denies permissions that ScheduledJobs need; Jobs work", "denied", strings.Join(missing, ", "), "remedy", grant)
	}
	return nil
}

// install installs the CustomResourceDefinition of ScheduledJobs.
func install(ctx context.Context, config *rest.Config) error {
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	err := cluster.InstallScheduledJobs(ctx, config)
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return &app.Fatal{Cannot: "install the kind ScheduledJob", Err: err,
			Remedy: `leave out --install-crds, and ask an administrator to run "kubectl apply -k deploy/crd": Jobs work without it`}
	}
	return &app.Fatal{Cannot: "install the kind ScheduledJob", Err: err,
		Remedy: `try "kubectl apply -k deploy/crd", or leave out --install-crds: Jobs work without it`}
}
