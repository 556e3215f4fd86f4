package clustertest

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/functions/pod"
)

// OwnedBy gives the Pod the Job as its controller.
func OwnedBy(j *batchv1.Job) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(j, batchv1.SchemeGroupVersion.WithKind("Job"))}
	}
}

// MakePod creates a Pod that names the Job as its owner, which need not be in its namespace.
func (w *World) MakePod(j *batchv1.Job, serial int) *corev1.Pod {
	w.Helper()
	pod := pod.Build(j, CreateEffect(j, serial), nil)
	pod.Namespace = w.NS
	pod, err := w.CoreV1().Pods(w.NS).Create(w.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return pod
}

// ForeignPod creates a Pod without any relation to jobstream.
func (w *World) ForeignPod(name string, labels map[string]string, change ...func(*corev1.Pod)) *corev1.Pod {
	w.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: Job("x").Spec.Template.Spec}
	for _, f := range change {
		f(p)
	}
	p, err := w.CoreV1().Pods(w.NS).Create(w.Context(), p, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// LivePod reads the Pod; nil means that it does not exist.
func (w *World) LivePod(name string) *corev1.Pod {
	w.Helper()
	p, err := w.CoreV1().Pods(w.NS).Get(w.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// TouchPod changes a field that no controller reads, so that the Pod gets a new version.
func (w *World) TouchPod(name string) *corev1.Pod {
	w.Helper()
	p := w.LivePod(name)
	p.Annotations["touched"] = p.ResourceVersion
	p, err := w.CoreV1().Pods(w.NS).Update(w.Context(), p, metav1.UpdateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// EditPod does what a user does with kubectl edit.
func (w *World) EditPod(name string, change func(*corev1.Pod)) *corev1.Pod {
	w.Helper()
	p := w.LivePod(name)
	change(p)
	p, err := w.CoreV1().Pods(w.NS).Update(w.Context(), p, metav1.UpdateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// BindPod assigns the Pod to a node, so that its deletion takes time. It returns only when the API server's cache has the node: a
// deletion that first meets an older version of the Pod there has no grace period (Kubernetes 1.36, CheckGracefulDelete changes
// the options of both attempts).
func (w *World) BindPod(name string) {
	w.Helper()
	err := w.CoreV1().Pods(w.NS).Bind(w.Context(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.NS}, Target: corev1.ObjectReference{Kind: "Node", Name: "n"},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	Eventually(w, func() string {
		p, err := w.CoreV1().Pods(w.NS).Get(w.Context(), name, metav1.GetOptions{ResourceVersion: "0"})
		if err != nil || p.Spec.NodeName == "" {
			return "the cache to know the node"
		}
		return ""
	})
}

// EndPod plays the kubelet of a Pod that has ended, or has begun to run.
func (w *World) EndPod(name string, phase corev1.PodPhase) *corev1.Pod {
	w.Helper()
	p := w.LivePod(name)
	p.Status.Phase = phase
	p, err := w.CoreV1().Pods(w.NS).UpdateStatus(w.Context(), p, metav1.UpdateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// DeletePodNow deletes the Pod without a grace period.
func (w *World) DeletePodNow(name string) {
	w.Helper()
	if err := w.CoreV1().Pods(w.NS).Delete(w.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		w.Fatal(err)
	}
}
