// Package upstream opens what Kubernetes keeps to itself: the unexported functions of k8s.io/kubernetes/pkg/controller/job,
// as they are compiled, under names of our own. The linker resolves //go:linkname to them (its restriction is for the standard
// library's), so a plain "go test" is enough and no source is copied or patched. The types below repeat unexported ones field
// by field; TestLayouts compares them, and every signature, with the source of the version that is linked.
package upstream
