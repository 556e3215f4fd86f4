// Tests that need the real Kubernetes: a module of its own, so that users of jobstream never see k8s.io/kubernetes.
module github.com/jobstream/jobstream/test

go 1.26.0

require github.com/jobstream/jobstream v0.0.0

replace github.com/jobstream/jobstream => ..
