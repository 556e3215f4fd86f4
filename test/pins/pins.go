//go:build pins

// Package pins keeps modules in go.mod until the tests that need them are here. Its build tag keeps it from being
// compiled, which would take minutes; "go mod tidy" reads it all the same.
package pins

import (
	_ "k8s.io/kubernetes/pkg/registry/batch/job" // the status oracle: what the API server itself checks
)
