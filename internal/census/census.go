package census

import (
	"hash/fnv"
	"iter"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

const (
	// NoReason is the reason of a Pod that is Pending without one: neither the scheduler nor the kubelet has looked at it yet.
	NoReason = "none"
	// OtherReason stands for every reason that Reasons does not list.
	OtherReason = "other"
)

// Reasons are the reasons that are told apart: those of Kubernetes' own scheduler and kubelet, first NoReason and last OtherReason. The
// list is closed because a user who may write the status of a Pod can write any word there.
var Reasons = []string{NoReason, "Unschedulable", "SchedulingGated", "SchedulerError", "ContainerCreating", "PodInitializing", "ErrImagePull",
	"ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed",
	"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PostStartHookError", "CrashLoopBackOff", OtherReason}

// Config configures a Census. All fields may be zero.
type Config struct {
	// Schedules is how many ScheduledJobs are remembered, the oldest; 0 means none.
	Schedules int
	// Started is called when the first Pod of a Job is seen to have started, once for each Job that the clock has started, with the
	// Job's nominal time and the time of the observation. It must return at once.
	Started func(namespace string, nominal, at time.Time)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Census counts what one watcher sees. Its methods may be called from any goroutine.
type Census struct {
	config Config

	mu         sync.Mutex
	pending    map[id]uint8 // Pods, with the index of their reason in Reasons
	backingOff map[id]struct{}
	awaited    map[id]int64 // runs without a started Pod, with their nominal times in Unix seconds
	schedules  schedules
}

// id is a hash of a UID: a third of its size in a map.
type id [16]byte

func idOf(uid types.UID) (out id) {
	h := fnv.New128a()
	_, _ = h.Write([]byte(uid)) // never fails
	h.Sum(out[:0])
	return out
}

// New returns an empty Census.
func New(c Config) *Census {
	if c.Started == nil {
		c.Started = func(string, time.Time, time.Time) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	out := &Census{config: c}
	out.forget()
	out.schedules.reset(c.Schedules)
	return out
}

func (c *Census) forget() {
	c.pending, c.backingOff, c.awaited = map[id]uint8{}, map[id]struct{}{}, map[id]int64{}
}

// Pending returns how many Pods are Pending, for each of Reasons.
func (c *Census) Pending() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]int, len(Reasons))
	for _, reason := range c.pending {
		out[reason]++
	}
	return out
}

// BackingOff returns how many Jobs wait to create the next Pod after a failed one.
func (c *Census) BackingOff() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.backingOff)
}

// Listed replaces what is known of Jobs and Pods by complete lists: all claimed Jobs, and each Pod with its Job's UID.
func (c *Census) Listed(jobs iter.Seq[*events.Job], pods iter.Seq2[types.UID, events.Pod]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget()
	for j := range jobs {
		c.sawBackoff(*j)
		c.await(*j)
	}
	for owner, p := range pods {
		c.sawPhase(p)
		if p.Phase != events.Pending {
			delete(c.awaited, idOf(owner)) // it has started at a time that is not known
		}
	}
}

// SawJob records an observation of a claimed Job, and whether it has just been created.
func (c *Census) SawJob(j events.Job, created bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sawBackoff(j)
	if created {
		c.await(j)
	}
	c.sawProgress(j)
}

// MissedJob records that the Job is gone.
func (c *Census) MissedJob(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.backingOff, idOf(uid))
	delete(c.awaited, idOf(uid))
}

// SawPod records an observation of a Pod of the Job with that UID in the namespace.
//
// Two watches may show a Pod that a Job adopts, and an older observation may come last. Then the Pod is counted as Pending until its
// next event, its end at the latest.
func (c *Census) SawPod(namespace string, owner types.UID, p events.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sawPhase(p)
	if hasStarted(p) {
		c.started(namespace, owner)
	}
}

// MissedPod records that the Pod is gone, or belongs to no claimed Job any more.
func (c *Census) MissedPod(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, idOf(uid))
}

// sawPhase counts a Pod that waits to start. One that is being deleted waits for nothing.
func (c *Census) sawPhase(p events.Pod) {
	if p.Phase != events.Pending || p.Deleting {
		delete(c.pending, idOf(p.UID))
		return
	}
	c.pending[idOf(p.UID)] = reasonOf(p)
}

func reasonOf(p events.Pod) uint8 {
	reason := p.Waiting
	if reason == "" {
		reason = NoReason
	}
	at := slices.Index(Reasons, reason)
	if at < 0 {
		at = len(Reasons) - 1
	}
	return uint8(at)
}

// sawBackoff counts a Job that will try again, which one that is being deleted will not.
func (c *Census) sawBackoff(j events.Job) {
	if _, waits := j.Condition(v1alpha1.BackingOffCondition); waits && !j.Finished() && !j.Deleting {
		c.backingOff[idOf(j.UID)] = struct{}{}
		return
	}
	delete(c.backingOff, idOf(j.UID))
}
