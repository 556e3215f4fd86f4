// Package deploy embeds what a cluster needs before jobstream's programs can run in it, for programs and tests that start one.
// Users install it with kustomize: see README.md.
package deploy

import _ "embed"

// ScheduledJobs is the CustomResourceDefinition of the kind ScheduledJob, as YAML.
//
//go:embed crd/scheduledjobs.yaml
var ScheduledJobs []byte

// TriggerRBAC is what the trigger may do in a cluster: a ServiceAccount, a ClusterRole and its binding, as YAML.
//
//go:embed base/trigger-rbac.yaml
var TriggerRBAC []byte

// ReconcilerRBAC is what the reconciler may do in a cluster: a ServiceAccount, a ClusterRole and its binding, as YAML.
//
//go:embed base/reconciler-rbac.yaml
var ReconcilerRBAC []byte
