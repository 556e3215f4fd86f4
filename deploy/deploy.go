// Package deploy holds what a cluster needs before our programs can run in it, for those that start one of their own. For
// people it is kustomize: see README.md.
package deploy

import _ "embed"

// ScheduledJobs is the CustomResourceDefinition of the kind ScheduledJob, as YAML.
//
//go:embed base/scheduledjobs-crd.yaml
var ScheduledJobs []byte
