// Package controlplane builds the real Kubernetes control plane from source, and tests that it starts, works
// and leaves nothing behind.
//
//	build/       the command behind "make controlplane"
//	kubernetes/  the module that pins kube-apiserver, kube-controller-manager and kubectl
//	etcd/        the module that pins etcd
//
// The two modules hold no code of jobstream: "go build" there makes the programs that their go.mod lists as tools. They
// are apart from this module and from each other because each program shall get exactly the dependencies that its
// authors released it with; in one module graph the newest requirement of all would win.
//
// To move to another Kubernetes, change the constants in internal/dev/controlplane/assets and the versions in
// kubernetes/go.mod and in test/go.mod, then run "go mod tidy" in each module.
package controlplane
