package events

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Type names an event. It is also the last token of the fact's subject and the middle of its CloudEvents type.
type Type string

// The closed set of facts. Past participles: a fact has happened and asks for nothing.
const (
	TypeJobObserved   Type = "JobObserved"
	TypeJobGone       Type = "JobGone"
	TypeJobListed     Type = "JobListed"
	TypePodObserved   Type = "PodObserved"
	TypePodGone       Type = "PodGone"
	TypeTimerFired    Type = "TimerFired"
	TypeEffectRefused Type = "EffectRefused"

	TypeJobPartListed      Type = "JobPartListed"
	TypeParametersObserved Type = "ParametersObserved"
)

// Event is one thing that has happened to the object that a Key names. The set is closed: decode refuses any other.
type Event interface {
	// Type is the event's name in the vocabulary.
	Type() Type
	// id distinguishes this event from all others of its key and type; "" if it has no identity that outlives a process.
	id() string
}

// JobObserved is an observation of a Job at one resourceVersion.
type JobObserved struct {
	Job Job `json:"job"`
}

// JobGone reports that the Job of the key no longer exists.
type JobGone struct {
	Name string `json:"name"`
	// Version is the resourceVersion of the deletion, 0 if a GET found nothing.
	Version uint64 `json:"version,omitzero"`
}

// JobListed is a snapshot: the Job as a complete LIST of Jobs showed it, and its Pods as a LIST of Pods that began
// afterwards showed them. It answers a TakeInventory by its ID, or comes unasked after a relist of the trigger.
//
//	LIST Jobs (JobsVersion) ---- then ----> LIST Pods (Version)
//
// The order makes the snapshot complete: a Pod that was counted, and no longer held, before the Job was read is in its counters, and
// a Pod that was held after that is in the list.
type JobListed struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	// Job is nil if the list of Jobs did not have it.
	Job *Job `json:"job,omitempty"`
	// JobsVersion is the resourceVersion of the list of Jobs; compare it with versions of Jobs only.
	JobsVersion uint64 `json:"jobsVersion"`
	// Version is the resourceVersion of the list of Pods; compare it with versions of Pods only.
	Version uint64 `json:"version"`
	// Pods are all Pods of the Job that are held or not finished, including orphans that the Job may adopt; with a limit of failed
	// Pods, also those that have failed. None has an End, which would make a large snapshot half as large again.
	Pods []Pod `json:"pods,omitempty"`
	// AdoptsNone reports whether the Job has a user's own selector and too many older Jobs of its namespace have one, so that it
	// adopts no Pods.
	AdoptsNone bool `json:"adoptsNone,omitempty"`
}

// PodObserved is an observation of a Pod at one resourceVersion.
type PodObserved struct {
	Pod Pod `json:"pod"`
}

// PodGone reports that a Pod no longer exists. Its Pod is the last observation, and Version that of the deletion. If a GET found
// nothing, only Name and UID are meaningful.
type PodGone struct {
	Pod Pod `json:"pod"`
}

// ParametersObserved reports that the ConfigMap of per-completion parameters is valid, and for how many completions. An invalid
// one is an EffectRefused of ReadParameters.
type ParametersObserved struct {
	Name string `json:"name"`
	// Count is the length of its lists.
	Count int `json:"count"`
	// At is when it was read.
	At time.Time `json:"at"`
}

// Unread is the name of the timer that follows a fact that the reconciler could not read, because a newer program wrote it.
// Functions answer it with another inventory, and keep their state.
const Unread = "unread"

// TimerFired reports that a timer which an effect has set has fired. It only wakes: Plan looks at the clock itself. See Unread for
// the one exception.
type TimerFired struct {
	Name string `json:"name"`
	// At is the time that the timer was set for: a timer that was reset may still fire for the earlier time.
	At time.Time `json:"at,omitzero"`
}

// EffectRefused reports that the API server understood an effect and refused it for reasons of its own (quota, admission, an
// invalid template, a name that another object has). Repeating it at once would not help.
type EffectRefused struct {
	// Effect is the kind of the refused effect, such as "CreatePod".
	Effect string `json:"effect"`
	// Serial is the Pod's serial if the effect was about a Pod.
	Serial int `json:"serial"`
	// Name is the object's name if the effect was about an existing object, such as a Pod to be deleted, or about the creation of a
	// Job.
	Name string `json:"name,omitempty"`
	// Reason is the API's own reason: Forbidden, Invalid, AlreadyExists, NotFound, …
	Reason string `json:"reason"`
	// Message is for people. It names fields but never their values, because values may be secrets.
	Message string `json:"message"`
	// At is when the API server refused it.
	At time.Time `json:"at"`
}

// Type implements Event.
func (JobObserved) Type() Type { return TypeJobObserved }

// Type implements Event.
func (JobGone) Type() Type { return TypeJobGone }

// Type implements Event.
func (JobListed) Type() Type { return TypeJobListed }

// Type implements Event.
func (PodObserved) Type() Type { return TypePodObserved }

// Type implements Event.
func (PodGone) Type() Type { return TypePodGone }

// Type implements Event.
func (ParametersObserved) Type() Type { return TypeParametersObserved }

// Type implements Event.
func (TimerFired) Type() Type { return TypeTimerFired }

// Type implements Event.
func (EffectRefused) Type() Type { return TypeEffectRefused }

// NoSerial and NoIndex stand for a Pod without a serial or a completion index.
const (
	NoSerial = -1
	NoIndex  = -1
)

// Pod is what functions need to know of a Pod, and nothing else: no template, no environment, no message.
type Pod struct {
	_ struct{} `cbor:",toarray"` // the state keeps thousands of these: no field names on each

	Name string    `json:"name"`
	UID  types.UID `json:"uid,omitempty"`
	// Version is the resourceVersion of this observation; comparable among all Pods (KEP-5504), not with other types.
	Version uint64 `json:"version,omitzero"`
	// Owner is the name of the Job that controls the Pod, or that it was created for.
	Owner string `json:"owner,omitempty"`
	// Serial is the Pod's ordinal within its Job, NoSerial for a Pod that carries none.
	Serial int `json:"serial"`
	// Index is the completion index of an Indexed Job's Pod, else NoIndex.
	Index int      `json:"index"`
	Phase PodPhase `json:"phase,omitempty"`
	// Held reports whether the Pod carries jobstream's finalizer: it cannot vanish before it is counted.
	Held bool `json:"held,omitempty"`
	// Orphan reports whether no controller owns the Pod, though the Job of the key may adopt it.
	Orphan bool `json:"orphan,omitempty"`
	// Labels decide whether the Job's selector matches; nil if the Pod has the generated label of this very Job.
	Labels map[string]string `json:"labels,omitzero"`
	// Deleting reports whether a deletion timestamp is set.
	Deleting  bool `json:"deleting,omitempty"`
	Ready     bool `json:"ready,omitempty"`
	Scheduled bool `json:"scheduled,omitempty"`
	// Restarts is the sum of restart counts over init containers and containers.
	Restarts   int32     `json:"restarts,omitempty"`
	Created    time.Time `json:"created,omitzero"`
	ReadySince time.Time `json:"readySince,omitzero"`
	// Finished is when the Pod ended, by the best evidence it carries; zero if it has not ended.
	Finished time.Time `json:"finished,omitzero"`
	// Waiting is the reason why a Pending Pod does not start, as the kubelet or the scheduler reports it, such as ImagePullBackOff; if
	// it is being deleted and has a finalizer of another program, FinalizerPrefix and the first of those.
	Waiting string `json:"waiting,omitempty"`
	// IndexFailures and IndexIgnoredFailures are how often the Pod's index had failed when the Pod was made.
	IndexFailures        int32 `json:"indexFailures,omitzero"`
	IndexIgnoredFailures int32 `json:"indexIgnoredFailures,omitzero"`
	// Exits and Conditions are the evidence for a podFailurePolicy, of a Pod that has failed or is being deleted: the
	// containers that ended with another code than 0, init containers last, and the Pod's conditions.
	Exits      []Exit         `json:"exits,omitempty"`
	Conditions []PodCondition `json:"conditions,omitempty"`
	// End describes the end of a Pod that has ended or is being deleted, for subscribers; nil before.
	End *PodEnd `json:"end,omitempty"`
}

// PodEnd describes how a Pod has ended, as far as only subscribers need it. It has no message: the container writes that, and it
// may contain anything.
type PodEnd struct {
	_ struct{} `cbor:",toarray"`

	// Node is where it ran, Start when the node took it, Reason that of its status, such as Evicted.
	Node   string    `json:"node,omitempty"`
	Start  time.Time `json:"start,omitzero"`
	Reason string    `json:"reason,omitempty"`
	// Container is the one that decided; nil if none is known.
	Container *ContainerEnd `json:"container,omitempty"`
}

// ContainerEnd describes how a container has ended.
type ContainerEnd struct {
	_ struct{} `cbor:",toarray"`

	// Name is the container's.
	Name string `json:"name"`
	// ExitCode is its exit code; 0 means success.
	ExitCode int32 `json:"exitCode"`
	// Reason is the kubelet's reason, such as Completed, Error or OOMKilled.
	Reason string `json:"reason,omitempty"`
}

// Exit describes the end of a container that failed.
type Exit struct {
	_ struct{} `cbor:",toarray"`

	Container string `json:"container"`
	Code      int32  `json:"code"` // not 0
}

// PodCondition is a condition of a Pod without its message.
type PodCondition struct {
	_ struct{} `cbor:",toarray"`

	Type   corev1.PodConditionType `json:"type"`
	Status corev1.ConditionStatus  `json:"status"`
}

// PodPhase is core/v1's phase.
type PodPhase string

// The phases that matter to tracking; any other reads as Pending.
const (
	Pending   PodPhase = "Pending"
	Running   PodPhase = "Running"
	Unknown   PodPhase = "Unknown"
	Succeeded PodPhase = "Succeeded"
	Failed    PodPhase = "Failed"
)

// FinalizerPrefix is what Pod.Waiting begins with if a finalizer of another program holds the deletion of the Pod.
const FinalizerPrefix = "finalizer "

// Terminal reports whether the Pod's containers have ended for good.
func (p Pod) Terminal() bool { return p.Phase == Succeeded || p.Phase == Failed }
