// Package upstream gives access to the unexported functions of k8s.io/kubernetes/pkg/controller/job, as they are compiled, under
// names of its own. The linker resolves //go:linkname to them (its restriction applies to the standard library), so a plain "go
// test" is enough and no source is copied or patched. The types below repeat unexported ones field by field; TestLayouts
// compares them, and every signature, with the source of the linked version.
package upstream
