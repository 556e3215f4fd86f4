package processnode

import (
	"context"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// requestTimeout bounds one request: a connection that has been cut must not hold up a Pod for long.
	requestTimeout = 10 * time.Second
	// writesAtOnce bounds the writes under way. More would not go faster, and with thousands of Pods those at the end of
	// the queue would time out.
	writesAtOnce = 64
	// reportRetry is the first wait after a write that failed, doubled up to reportRetryMax.
	reportRetry    = 100 * time.Millisecond
	reportRetryMax = 5 * time.Second
)

// report is the part of a Pod's status that the API server does not have yet.
type report struct {
	since    time.Time // of the oldest change that has not been written; zero: all is
	writing  bool
	retryAt  time.Time
	failures int
}

func (r *report) mark(now time.Time) {
	if r.since.IsZero() {
		r.since = now
	}
}

// written is how one write went. object is the newest state of the object that it has shown.
type written struct {
	object *v1.Pod
	gone   bool
	err    error
}

func (p *pod) reported() bool { return p.report.since.IsZero() && !p.report.writing }

// reportIfDue writes the status if it has changed, one write at a time. Changes in quick succession are written together; the
// last one is written at once. It returns when to check again.
func (p *pod) reportIfDue(ctx context.Context, done bool) (next time.Time) {
	r := &p.report
	if r.writing || r.since.IsZero() || p.gone {
		return time.Time{}
	}
	now := time.Now()
	due := r.since
	if !done {
		due = due.Add(p.delay)
	}
	if due.Before(r.retryAt) {
		due = r.retryAt
	}
	if now.Before(due) {
		return due
	}
	if !p.writes.take(p.uid, askedByPod, p.nudge) {
		return time.Time{} // what happens until it is this Pod's turn is written with it
	}
	r.since, r.writing = time.Time{}, true
	object := *p.object
	object.Status = statusOf(p.object, view{
		containers: p.containers, stop: p.stop, done: done, started: p.started, ip: p.ip, now: now,
	})
	// Field ownership is the most expensive part of a write, and no client applies the Pods of this node.
	object.ManagedFields = []metav1.ManagedFieldsEntry{{}}
	go func() {
		w := p.write(ctx, &object)
		p.writes.give(p.uid)
		p.post(func(in *inbox) { in.wrote = append(in.wrote, w) })
	}()
	return time.Time{}
}

// write puts the status. The object's resourceVersion is a precondition: the PUT carries labels and finalizers too, and
// must not restore those that another client has removed.
func (p *pod) write(ctx context.Context, object *v1.Pod) written {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	pods := p.client.CoreV1().Pods(object.Namespace)
	got, err := pods.UpdateStatus(ctx, object, metav1.UpdateOptions{})
	if err == nil {
		return written{object: got}
	}
	if apierrors.IsConflict(err) {
		if got, getErr := pods.Get(ctx, object.Name, metav1.GetOptions{}); getErr == nil {
			return written{object: got, gone: got.UID != p.uid, err: err}
		} else if !apierrors.IsNotFound(getErr) {
			return written{err: getErr}
		}
	}
	return written{gone: apierrors.IsConflict(err) || apierrors.IsNotFound(err), err: err}
}

// settle records the result of a write.
func (p *pod) settle(w written, now time.Time) {
	r := &p.report
	r.writing = false
	p.gone = p.gone || w.gone
	if w.object != nil && !w.gone {
		p.take(w.object)
	}
	if w.err == nil {
		r.failures, r.retryAt = 0, time.Time{}
		return
	}
	r.mark(now)
	if w.gone || apierrors.IsConflict(w.err) {
		return // at once, with what is there now
	}
	if r.failures == 0 {
		p.log.Warn("cannot write a pod's status, will try again", "pod", p.name, "err", w.err)
	}
	r.retryAt = now.Add(min(reportRetryMax, reportRetry<<min(r.failures, 16)))
	r.failures++
}

// removeIfDeleted removes the object of a deleted Pod whose containers have ended: the API server
// leaves that to the node. Finalizers may keep the object; the node is done then.
func (p *pod) removeIfDeleted(ctx context.Context, object *v1.Pod) {
	for ; asksForRemoval(object); object = p.newest(object) {
		for !p.writes.take(p.uid, askedByPod, p.nudge) && ctx.Err() == nil {
			p.sleep(ctx, time.Time{})
		}
		c, cancel := context.WithTimeout(ctx, requestTimeout)
		err := p.client.CoreV1().Pods(object.Namespace).Delete(c, object.Name, metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(object.UID)),
		})
		cancel()
		p.writes.give(p.uid)
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || ctx.Err() != nil {
			return
		}
		p.log.Warn("cannot remove a deleted pod, will try again", "pod", p.name, "err", err)
		p.sleep(ctx, time.Now().Add(reportRetryMax))
	}
}

// asksForRemoval reports whether a deletion waits for the node: with grace 0 it no longer does.
func asksForRemoval(object *v1.Pod) bool {
	return object.DeletionTimestamp != nil && object.DeletionGracePeriodSeconds != nil && *object.DeletionGracePeriodSeconds > 0
}

// newest returns the newest observation of the object in the inbox, or the given one.
func (p *pod) newest(object *v1.Pod) *v1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inbox.object != nil && version(p.inbox.object) >= version(object) {
		return p.inbox.object
	}
	return object
}

// version is the object's resourceVersion, to compare with others of the same resource.
func version(object *v1.Pod) uint64 {
	if object == nil {
		return 0
	}
	v, _ := strconv.ParseUint(object.ResourceVersion, 10, 64)
	return v
}
