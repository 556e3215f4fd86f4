package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/scheduledjob"
	"github.com/jobstream/jobstream/internal/cluster"
	"github.com/jobstream/jobstream/internal/engine"
	"github.com/jobstream/jobstream/internal/fair"
)

const (
	// defaultConcurrency keeps two cores of API server busy and stays below the 100 streams that it allows on one HTTP/2
	// connection, on which watches need some, too.
	defaultConcurrency = 64
	// requestShare is how many requests one namespace may have under way for each free one: alone it gets half of them. An API
	// server that is busy with these delays the requests of all other clients, and 32 are enough to keep it busy.
	requestShare = 1
	// requestParts and companyWithin are the share while another namespace has something to do: of 64 requests, one namespace
	// gets 16 then, and for ten seconds after the other's last request.
	requestParts  = 3
	companyWithin = 10 * time.Second
	// defaultTimeout of one request: after a longer wait, the Actor asks again for the outcome.
	defaultTimeout = 15 * time.Second
	// defaultCacheBytes is room for 9,000 Jobs of one container with ten variables (BenchmarkWeigh).
	defaultCacheBytes = 64 << 20
)

// Config configures an Actor. All but Client may be zero.
type Config struct {
	Client kubernetes.Interface
	// ScheduledJobs is the client for effects on these; without it each of these effects fails.
	ScheduledJobs *cluster.ScheduledJobs
	// Namespaces are the only ones that the Actor changes; none means everywhere.
	Namespaces []string
	// Zones loads the time zones of ScheduledJobs; nil means time.LoadLocation.
	Zones scheduledjob.Zones
	// Claim decides which Jobs are jobstream's; its ManagedBy "" means v1alpha1.DefaultManagedBy. The Actor checks that for each
	// fact's Job, and leaves other controllers' Jobs alone.
	Claim events.Claim
	// Log receives refusals; nil means slog.Default().
	Log *slog.Logger
	// Recorder writes Kubernetes Events about the Job; nil writes none.
	Recorder *Recorder
	// Meter counts effects; nil counts nothing.
	Meter Meter
	// Concurrency is how many requests may be under way at the same time; 0 means 64. Namespaces share them: see requestShare.
	Concurrency int
	// Timeout of one request; 0 means 15 seconds.
	Timeout time.Duration
	// KeepManagedFields leaves field ownership alone. By default the Actor resets it on Pods as it removes their finalizer, and on Jobs of
	// ten Pods and more that no client applies server-side. That makes these writes 35 to 80 % cheaper for the API server.
	KeepManagedFields bool
	// TracePods passes the trace to Pods whose Job has no annotation that decides about it.
	TracePods bool
	// CacheBytes limits the memory that cached Jobs take, and that which cached ScheduledJobs take; 0 means 64 MiB each. They are
	// cached for their templates and status writes; see shelves for which of them go first.
	CacheBytes int
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Actor does the effects on the cluster. Any number of goroutines may use it at the same time.
type Actor struct {
	core, batch rest.Interface
	schedules   *cluster.ScheduledJobs // may be nil
	zones       scheduledjob.Zones
	recorder    *Recorder
	meter       Meter
	slots       *fair.Slots // requests, shared by namespaces
	timeout     time.Duration
	keepFields  bool
	tracePods   bool
	claim       events.Claim
	log         *slog.Logger
	jobs        *jobCache
	scheduled   *scheduleCache
	owned       *owned
	parameters  *parameterCache
	// inventory lists Jobs.
	inventory, scheduleInventory inventories
	now                          func() time.Time
	made                         time.Time // when the Actor was made
}

var _ engine.Actor = (*Actor)(nil)

// New makes an Actor. It fails if the configuration cannot work.
func New(c Config) (*Actor, error) {
	switch {
	case c.Client == nil:
		return nil, errors.New("actor: no client: set Config.Client")
	case c.Concurrency < 0, c.Timeout < 0, c.CacheBytes < 0:
		return nil, fmt.Errorf("actor: negative concurrency %d, timeout %v or cache of %d bytes: use 0 for the default",
			c.Concurrency, c.Timeout, c.CacheBytes)
	}
	if c.Zones == nil {
		c.Zones = time.LoadLocation
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Meter == nil {
		c.Meter = noMeter{}
	}
	if c.Claim.ManagedBy == "" {
		c.Claim.ManagedBy = v1alpha1.DefaultManagedBy
	}
	lists := cluster.Lister{Client: c.Client, ScheduledJobs: c.ScheduledJobs, Claim: c.Claim}
	return &Actor{
		claim:             c.Claim,
		log:               c.Log,
		core:              c.Client.CoreV1().RESTClient(),
		batch:             c.Client.BatchV1().RESTClient(),
		schedules:         c.ScheduledJobs,
		zones:             c.Zones,
		recorder:          c.Recorder,
		meter:             c.Meter,
		slots:             fair.NewSlots(cmp.Or(c.Concurrency, defaultConcurrency), requestShare).BesideOthers(requestParts, companyWithin),
		timeout:           cmp.Or(c.Timeout, defaultTimeout),
		keepFields:        c.KeepManagedFields,
		tracePods:         c.TracePods,
		jobs:              newJobCache(cmp.Or(c.CacheBytes, defaultCacheBytes), c.Now),
		scheduled:         newScheduleCache(cmp.Or(c.CacheBytes, defaultCacheBytes), c.Now),
		owned:             newOwned(),
		parameters:        newParameterCache(c.Now),
		inventory:         newInventories(c.Namespaces, lists, cluster.WantJobs),
		scheduleInventory: newInventories(c.Namespaces, lists, cluster.WantSchedules),
		made:              c.Now(),
		now:               c.Now,
	}, nil
}

// Act implements engine.Actor for every effect but SetTimer.
func (a *Actor) Act(ctx context.Context, key events.Key, e effect.Effect) ([]events.Event, error) {
	o, err := a.object(key)
	if err != nil {
		return nil, err
	}
	facts, err := a.do(ctx, key, o, e)
	if retry := (engine.Retry{}); errors.As(err, &retry) && ctx.Err() == nil {
		a.complain(key, o, e, retry)
	}
	return facts, err
}

func (a *Actor) do(ctx context.Context, key events.Key, o object, e effect.Effect) ([]events.Event, error) {
	switch e := e.(type) {
	case effect.CreatePod:
		return a.createPod(ctx, key, e)
	case effect.FindPod:
		return a.findPod(ctx, key, e)
	case effect.RemoveFinalizer:
		return a.removeFinalizer(ctx, key, e)
	case effect.AddFinalizer:
		return a.addFinalizer(ctx, key, e)
	case effect.AdoptPod:
		return a.adoptPod(ctx, key, e)
	case effect.ReleasePod:
		return a.releasePod(ctx, key, e)
	case effect.DeletePod:
		return a.deletePod(ctx, key, e)
	case effect.DeleteJob:
		return a.deleteJob(ctx, key, e)
	case effect.ReadParameters:
		return a.readParameters(ctx, key, e)
	case effect.WriteJobStatus:
		return a.writeJobStatus(ctx, key, e)
	case effect.TakeInventory:
		return o.takeInventory(ctx, key, e)
	}
	return a.doScheduled(ctx, key, e)
}

// doScheduled does the effects on ScheduledJobs.
func (a *Actor) doScheduled(ctx context.Context, key events.Key, e effect.Effect) ([]events.Event, error) {
	if a.schedules == nil {
		return nil, noSchedules(e)
	}
	switch e := e.(type) {
	case effect.CreateJob:
		return a.createJob(ctx, key, e)
	case effect.FindRun:
		return a.findRun(ctx, key, e)
	case effect.DeleteRun:
		return a.deleteRun(ctx, key, e)
	case effect.WriteScheduleStatus:
		return a.writeScheduleStatus(ctx, key, e)
	case effect.DeleteScheduledJob:
		return a.deleteScheduledJob(ctx, key, e)
	}
	return nil, fmt.Errorf("actor: effect %s is none that a cluster can do: give it to another actor", e.Kind())
}

func noSchedules(e effect.Effect) error {
	return fmt.Errorf("actor: %s: there is no client for ScheduledJobs: set Config.ScheduledJobs", e.Kind())
}

// call sends one request when its namespace has a slot, and reads the answer. It repeats nothing itself: if a server asks its
// clients to wait, the engine obeys and can do something else meanwhile.
func (a *Actor) call(ctx context.Context, namespace string, r *rest.Request, into runtime.Object) error {
	return a.send(ctx, a.slots.Acquire, namespace, r, into)
}

// callAhead is call for what is due now, and goes ahead of other requests of its namespace: Jobs that are under way already can wait longer than
// a schedule whose time has come.
func (a *Actor) callAhead(ctx context.Context, namespace string, r *rest.Request, into runtime.Object) error {
	return a.send(ctx, a.slots.AcquireAhead, namespace, r, into)
}

func (a *Actor) send(ctx context.Context, acquire func(context.Context, string) error, namespace string, r *rest.Request, into runtime.Object) error {
	if err := acquire(ctx, namespace); err != nil {
		return err
	}
	defer a.slots.Release(namespace)
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	return r.MaxRetries(0).Do(ctx).Into(into)
}

// getJob reads the current Job of the key. nil means that it does not exist, or that the name belongs to another Job.
func (a *Actor) getJob(ctx context.Context, key events.Key, name string) (*batchv1.Job, error) {
	j, err := a.readJob(ctx, key.Namespace, name, newest)
	if err != nil || j == nil || j.UID != key.UID {
		return nil, err
	}
	return j, nil
}

// How new the object has to be that a GET returns: its parameter resourceVersion.
const (
	newest     = ""  // as etcd has it
	anyVersion = "0" // as the API server's watch cache has it
)

// readJob reads the Job of that name; nil means that there is none.
func (a *Actor) readJob(ctx context.Context, namespace, name, version string) (*batchv1.Job, error) {
	get := a.batch.Get().Namespace(namespace).Resource("jobs").Name(name)
	if version != newest {
		get.Param("resourceVersion", version)
	}
	j := &batchv1.Job{}
	err := a.call(ctx, namespace, get, j)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return j, nil
}

// report writes a Kubernetes Event about the object of the key, which has that name.
func (a *Actor) report(key events.Key, name string, r effect.Report) {
	if a.recorder == nil || name == "" {
		return
	}
	if o, err := a.object(key); err == nil { // otherwise no effect can get here
		a.recorder.Report(&corev1.ObjectReference{APIVersion: o.apiVersion, Kind: o.kind, Namespace: key.Namespace, Name: name, UID: key.UID}, r)
	}
}

func (a *Actor) sawJob(j *batchv1.Job) []events.Event {
	return []events.Event{events.JobObserved{Job: events.ProjectJob(j, a.claim)}}
}

func missedJob(name string) []events.Event { return []events.Event{events.JobGone{Name: name}} }
