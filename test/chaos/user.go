package chaos

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/functions/scheduledjob"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

const (
	// namespace is where all of it happens.
	namespace = "chaos"
	// pauseFor is how long a Job is suspended.
	pauseFor = 5 * time.Second
	// requestFor bounds one request, and insist how long a user retries: longer than any outage of the API server.
	requestFor, insist = 15 * time.Second, healTime + time.Minute
	// onceIn is how far ahead a runAt is.
	onceIn = 4 * time.Second
	// openLarge and openOthers are how many Jobs of a user may be open at once, so that a slow machine does not get more than it
	// can finish.
	openLarge, openOthers = 1, 12
)

// want is what a user has asked for.
type want struct {
	Task
	intent
	uid types.UID
}

// user creates and changes what was drawn. It uses the API server directly, and does not give up.
type user struct {
	jobs      kubernetes.Interface
	schedules dynamic.ResourceInterface
	ledger    string
	log       *slog.Logger

	mu    sync.Mutex
	wants map[string]want // Jobs by name
	onces map[string]bool // ScheduledJobs with runAt, by name
	wrong []error
	left  int // omitted, since too many were open

	large, others chan struct{} // a token for each open Job
}

func newUser(s *harness.System, ledger string, log *slog.Logger) (*user, error) {
	config := rest.CopyConfig(s.REST)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &user{
		jobs: s.Client, schedules: client.Resource(v1alpha1.GroupVersion.WithResource(v1alpha1.ScheduledJobResource)).Namespace(namespace),
		ledger: ledger, log: log, wants: map[string]want{}, onces: map[string]bool{},
		large: make(chan struct{}, openLarge), others: make(chan struct{}, openOthers),
	}, nil
}

// run does everything that was drawn until ctx ends; work in progress is completed then.
func (u *user) run(ctx context.Context, tasks []Task) {
	began := time.Now()
	var all sync.WaitGroup
	defer all.Wait()
	for _, s := range schedules(u.ledger) {
		u.note(s.Name, u.schedule(ctx, s))
	}
	for _, t := range tasks {
		if !pass(ctx, t.At-time.Since(began)) {
			return
		}
		slots := u.others
		if t.Sort == Large {
			slots = u.large
		}
		select {
		case slots <- struct{}{}:
		default:
			u.mu.Lock()
			u.left++
			u.mu.Unlock()
			continue
		}
		all.Go(func() {
			u.note(t.Name, u.do(ctx, t))
			u.awaitEnd(ctx, t.Name)
			<-slots
		})
	}
}

// awaitEnd waits until the Job has ended or is gone, or ctx ends.
func (u *user) awaitEnd(ctx context.Context, name string) {
	for pass(ctx, time.Second) {
		j, err := u.jobs.BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && (harness.Is(j, batchv1.JobComplete) || harness.Is(j, batchv1.JobFailed)) {
			return
		}
	}
}

func (u *user) note(name string, err error) {
	if err != nil {
		u.log.Error("a user could not", "name", name, "err", err)
		u.mu.Lock()
		defer u.mu.Unlock()
		u.wrong = append(u.wrong, fmt.Errorf("user, %s: %w", name, err))
	}
}

// do carries out one Task. When ctx ends it no longer waits for what comes next.
func (u *user) do(ctx context.Context, t Task) error {
	end := context.WithoutCancel(ctx)
	if t.Sort == Once {
		u.mu.Lock()
		u.onces[t.Name] = true
		u.mu.Unlock()
		return u.schedule(end, once(t.Name, u.ledger, t.Seconds, time.Now().Add(onceIn)))
	}
	if t.Sort == Triggered {
		return u.trigger(end, t.Name)
	}
	j, intent := t.job(u.ledger)
	jobs := u.jobs.BatchV1().Jobs(namespace)
	err := u.insist(end, func(ctx context.Context) error {
		made, err := jobs.Create(ctx, j, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // the answer was lost
			made, err = jobs.Get(ctx, t.Name, metav1.GetOptions{})
		}
		if err == nil {
			u.mu.Lock()
			u.wants[t.Name] = want{t, intent, made.UID}
			u.mu.Unlock()
		}
		return err
	})
	if err != nil {
		return err
	}
	switch t.Sort {
	case Paused:
		pass(ctx, t.Then)
		if err := u.suspend(end, t.Name, true); err != nil {
			return err
		}
		pass(ctx, pauseFor)
		return u.suspend(end, t.Name, false)
	case Deleted:
		pass(ctx, t.Then)
		return u.insist(end, func(ctx context.Context) error {
			err := jobs.Delete(ctx, t.Name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)})
			if apierrors.IsNotFound(err) { // the answer was lost
				return nil
			}
			return err
		})
	}
	return nil
}

func (u *user) suspend(ctx context.Context, name string, yes bool) error {
	return u.insist(ctx, func(ctx context.Context) error {
		_, err := u.jobs.BatchV1().Jobs(namespace).Patch(ctx, name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, yes), metav1.PatchOptions{})
		return err
	})
}

func (u *user) schedule(ctx context.Context, s *v1alpha1.ScheduledJob) error {
	s.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ScheduledJobKind}
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
	if err != nil {
		return err
	}
	delete(m, "status")
	return u.insist(ctx, func(ctx context.Context) error {
		_, err := u.schedules.Create(ctx, &unstructured.Unstructured{Object: m}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

// trigger creates a Job of the ScheduledJob whose name the Job's begins with.
func (u *user) trigger(ctx context.Context, name string) error {
	made := time.Now()
	return u.insist(ctx, func(ctx context.Context) error {
		o, err := u.schedules.Get(ctx, string(Triggered), metav1.GetOptions{})
		if err != nil {
			return err
		}
		sj := &v1alpha1.ScheduledJob{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, sj); err != nil {
			return err
		}
		j := scheduledjob.BuildManual(sj, strings.TrimPrefix(name, sj.Name+"-"), made, v1alpha1.DefaultManagedBy)
		_, err = u.jobs.BatchV1().Jobs(namespace).Create(ctx, j, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // the answer was lost
			return nil
		}
		return err
	})
}

// rest ends what has no end of its own: the schedules.
func (u *user) rest(ctx context.Context) {
	for name := range periods {
		u.note(name, u.insist(ctx, func(ctx context.Context) error {
			_, err := u.schedules.Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"suspend":true}}`), metav1.PatchOptions{})
			return err
		}))
	}
}

// insist retries until it works: the API server may be away. A request refused as invalid stays refused. NotFound is no refusal:
// an API server that has just started does not know ScheduledJobs for a moment.
func (u *user) insist(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, insist)
	defer cancel()
	for {
		request, end := context.WithTimeout(ctx, requestFor)
		err := do(request)
		end()
		if err == nil || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || !pass(ctx, time.Second/2) {
			return err
		}
	}
}

// asked returns everything that was asked for so far, and what could not be done.
func (u *user) asked() (map[string]want, map[string]bool, []error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.wants), maps.Clone(u.onces), append([]error{}, u.wrong...)
}

// look lists what exists.
func (u *user) look(ctx context.Context) (w world, err error) {
	ctx, cancel := context.WithTimeout(ctx, 4*requestFor)
	defer cancel()
	jobs, err := u.jobs.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return w, err
	}
	pods, err := u.jobs.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return w, err
	}
	list, err := u.schedules.List(ctx, metav1.ListOptions{})
	if err != nil {
		return w, err
	}
	for _, item := range list.Items {
		var s v1alpha1.ScheduledJob
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &s); err != nil {
			return w, err
		}
		w.schedules = append(w.schedules, s)
	}
	w.pods = pods.Items
	w.jobs = map[types.UID]batchv1.Job{}
	for _, j := range jobs.Items {
		w.jobs[j.UID] = j
	}
	w.lines, err = readLedger(u.ledger)
	return w, err
}
