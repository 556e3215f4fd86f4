package kubectl

import (
	"context"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/finding"
	"github.com/jobstream/jobstream/internal/kubectl/why"
	"github.com/jobstream/jobstream/internal/zone"
)

const (
	// whyTimeout bounds all requests of one question together.
	whyTimeout = 30 * time.Second
	// whyPage is the number of objects read per request, and mostPages how many pages of Events are read: a client that writes
	// Events without end does not keep the question from being answered.
	whyPage   = 500
	mostPages = 4
	// mostActive is the number of active Jobs of a ScheduledJob that are explained, the oldest.
	mostActive = 3
)

// whyReader reads what "why" needs to know of an object. Every request is bounded, and selects by UID or label, so the number of other
// objects in the namespace hardly matters.
type whyReader struct {
	*client
	now func() time.Time
}

// job reads the Job's Pods and Events, at the same time.
func (r whyReader) job(ctx context.Context, o *batchv1.Job) why.Job {
	j := why.Job{Object: o}
	var pods, events error
	var reads sync.WaitGroup
	reads.Go(func() { j.Pods, j.MorePods, pods = r.pods(ctx, o) })
	moreEvents := false
	reads.Go(func() { j.Events, moreEvents, events = r.events(ctx, o.UID) })
	reads.Wait()
	if moreEvents {
		j.Unread = append(j.Unread, tooManyEvents)
	}
	if uid := why.Unexplained(j.Pods); uid != "" && events == nil {
		var more []corev1.Event
		more, _, events = r.events(ctx, uid)
		j.Events = append(j.Events, more...)
	}
	j.PodsUnread = pods != nil
	for _, one := range []struct {
		what string
		err  error
	}{{"Pods", pods}, {"Events", events}} {
		if one.err != nil {
			j.Unread = append(j.Unread, r.unread(one.what, one.err))
		}
	}
	j.Now = r.now()
	return j
}

// pods lists the Job's Pods. If they do not fit into a page, those that are Pending are listed, too: they may be on a later page.
func (r whyReader) pods(ctx context.Context, o *batchv1.Job) (found []corev1.Pod, more bool, err error) {
	options := podsOf(o)
	if selector, bad := metav1.LabelSelectorAsSelector(o.Spec.Selector); bad == nil && o.Spec.Selector != nil {
		options.LabelSelector = selector.String() // one of the user's own selects other labels
	}
	options.Limit = whyPage
	list, err := r.CoreV1().Pods(o.Namespace).List(ctx, options)
	if err != nil {
		return nil, false, err
	}
	seen := map[types.UID]bool{}
	add := func(all []corev1.Pod) {
		for _, p := range all {
			if owner := metav1.GetControllerOf(&p); !seen[p.UID] && owner != nil && owner.UID == o.UID {
				seen[p.UID] = true
				found = append(found, p)
			}
		}
	}
	add(list.Items)
	if list.Continue == "" {
		return found, false, nil
	}
	options.FieldSelector = "status.phase=" + string(corev1.PodPending)
	if list, err = r.CoreV1().Pods(o.Namespace).List(ctx, options); err != nil {
		return found, true, err
	}
	add(list.Items)
	return found, true, nil
}

// tooManyEvents reports that Events were left out.
var tooManyEvents = finding.Good("events", "there are more than %d Warning Events about it; the others were not read", mostPages*whyPage)

// events lists the Warning Events about the object. more reports whether there are more than are read.
func (r whyReader) events(ctx context.Context, uid types.UID) (found []corev1.Event, more bool, err error) {
	options := metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(uid) + ",type=" + corev1.EventTypeWarning, Limit: whyPage}
	for range mostPages {
		list, err := r.CoreV1().Events(r.namespace).List(ctx, options)
		if err != nil {
			return found, false, err
		}
		found = append(found, list.Items...)
		if options.Continue = list.Continue; options.Continue == "" {
			return found, false, nil
		}
	}
	return found, true, nil
}

// schedule reads the ScheduledJob's active Jobs, the last one that ended, and its Events, at the same time.
func (r whyReader) schedule(ctx context.Context, o *v1alpha1.ScheduledJob) why.Schedule {
	s := why.Schedule{Object: o, Zones: zone.Load}
	var mu sync.Mutex
	var reads sync.WaitGroup
	unread := func(f finding.Finding) {
		mu.Lock()
		defer mu.Unlock()
		s.Unread = append(s.Unread, f)
	}
	get := func(name string, uid types.UID) *batchv1.Job {
		j, err := r.BatchV1().Jobs(o.Namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil && j.UID == uid:
			return j
		case err != nil && !apierrors.IsNotFound(err):
			unread(finding.Worry("not read", finding.Warn, "without it a cause may be missing", "%v", r.answered("cannot read the Job "+name, err)))
		}
		return nil // it is gone, and the status is not written yet
	}
	refs := o.Status.Active[:min(len(o.Status.Active), mostActive)]
	active := make([]*why.Job, len(refs))
	for i, ref := range refs {
		reads.Go(func() {
			if j := get(ref.Name, ref.UID); j != nil {
				read := r.job(ctx, j)
				active[i] = &read
			}
		})
	}
	if l := o.Status.LastRun; l != nil && l.Result == string(batchv1.JobFailed) {
		reads.Go(func() { s.Last = get(l.JobName, l.JobUID) })
	}
	reads.Go(func() {
		var more bool
		var err error
		if s.Events, more, err = r.events(ctx, o.UID); err != nil {
			unread(r.unread("Events", err))
		} else if more {
			unread(tooManyEvents)
		}
	})
	reads.Wait()
	for _, j := range active {
		if j != nil {
			s.Active = append(s.Active, *j)
		}
	}
	s.Now = r.now()
	return s
}
