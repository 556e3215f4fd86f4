package events

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// ScheduledJob is what functions need to know of a ScheduledJob. Its template is not in it.
type ScheduledJob struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// Version is the resourceVersion of this observation; comparable with versions of ScheduledJobs only.
	Version    uint64    `json:"version"`
	Generation int64     `json:"generation"`
	Deleting   bool      `json:"deleting,omitempty"`
	Created    time.Time `json:"created"`

	// Schedule is empty if Schedules or RunAt is set.
	Schedule string `json:"schedule,omitempty"`
	// Schedules are 1 to 10, in place of Schedule.
	Schedules []string `json:"schedules,omitempty"`
	// Exclude are the entries of schedule.List.
	Exclude []string `json:"exclude,omitempty"`
	// NotBefore and NotAfter are the first and the last possible nominal time; zero for no limit.
	NotBefore time.Time `json:"notBefore,omitzero"`
	NotAfter  time.Time `json:"notAfter,omitzero"`
	// RunAt is zero if Schedule or Schedules is set.
	RunAt time.Time `json:"runAt,omitzero"`
	// StartAfter is zero if it is not set: the first nominal time is then the first after Created.
	StartAfter              time.Time                     `json:"startAfter,omitzero"`
	TimeZone                string                        `json:"timeZone,omitempty"`
	StartingDeadlineSeconds *int64                        `json:"startingDeadlineSeconds,omitempty"`
	ConcurrencyPolicy       v1alpha1.ConcurrencyPolicy    `json:"concurrencyPolicy,omitempty"`
	Suspended               bool                          `json:"suspended,omitempty"`
	CatchUp                 v1alpha1.CatchUpPolicy        `json:"catchUp,omitempty"`
	OnScheduleChange        v1alpha1.ScheduleChangePolicy `json:"onScheduleChange,omitempty"`
	JitterSeconds           int32                         `json:"jitterSeconds,omitempty"`
	// QueueLimit is how many times may wait with the policy Queue, 1 to 100; 0 with another.
	QueueLimit int32 `json:"queueLimit,omitempty"`
	// PauseAfterFailures is after how many failed Jobs in a row no more are created, 1 to 100; 0 for no limit.
	PauseAfterFailures int32 `json:"pauseAfterFailures,omitempty"`
	// SuccessfulJobs and FailedJobs are how many finished Jobs are kept.
	SuccessfulJobs          int32  `json:"successfulJobs"`
	FailedJobs              int32  `json:"failedJobs"`
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
	// Invalid describes, in a whole sentence, what is wrong with the spec apart from the schedule, such as a manualSelector that an
	// older definition accepted; "" if nothing is.
	Invalid string `json:"invalid,omitempty"`

	Status v1alpha1.ScheduledJobStatus `json:"status"`
}

// Paused reports whether no Jobs are created because too many in a row have failed. An edit of the spec ends that.
func (j ScheduledJob) Paused() bool {
	return j.PauseAfterFailures > 0 && j.Status.ConsecutiveFailures >= j.PauseAfterFailures && j.Status.ObservedGeneration == j.Generation
}

// Stopped reports whether no Jobs are created for now: a user has suspended the ScheduledJob, or it is paused.
func (j ScheduledJob) Stopped() bool { return j.Suspended || j.Paused() }

// Expires returns when a ScheduledJob that runs once, and has done so, is to be deleted; zero for never.
func (j ScheduledJob) Expires() time.Time {
	done := meta.FindStatusCondition(j.Status.Conditions, v1alpha1.FinishedCondition)
	if done == nil || done.Status != metav1.ConditionTrue || j.TTLSecondsAfterFinished == nil || j.RunAt.IsZero() ||
		j.Status.ObservedGeneration != j.Generation {
		return time.Time{}
	}
	return done.LastTransitionTime.Add(time.Duration(*j.TTLSecondsAfterFinished) * time.Second)
}

// ScheduledJobObserved is an observation of a ScheduledJob at one resourceVersion.
type ScheduledJobObserved struct {
	ScheduledJob ScheduledJob `json:"scheduledJob"`
}

// ScheduledJobGone reports that the ScheduledJob of the key no longer exists.
type ScheduledJobGone struct {
	Name string `json:"name"`
	// Version is the resourceVersion of the deletion, 0 if a GET found nothing.
	Version uint64 `json:"version,omitzero"`
}

// ScheduleListed is a snapshot: the ScheduledJob as a complete LIST showed it, and the Jobs that it owns as a LIST of Jobs
// that began afterwards showed them. It answers a TakeInventory by its ID, or comes unasked after a relist of the trigger.
type ScheduleListed struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	// ScheduledJob is nil if the list did not have it.
	ScheduledJob *ScheduledJob `json:"scheduledJob,omitempty"`
	// SchedulesVersion is the resourceVersion of the list of ScheduledJobs; compare it with versions of those only.
	SchedulesVersion uint64 `json:"schedulesVersion"`
	// Version is the resourceVersion of the list of Jobs; compare it with versions of Jobs only.
	Version uint64 `json:"version"`
	// Runs are all Jobs that the ScheduledJob owns.
	Runs []Run `json:"runs,omitempty"`
}

// ScheduleDue is a due notice: a nominal time has come. It only wakes: which times have come, and what becomes of each, is
// decided from the state and the clock, whatever woke the function.
type ScheduleDue struct {
	Nominal time.Time `json:"nominal"`
}

// Run is what a ScheduledJob needs to know of a Job that it owns.
type Run struct {
	_ struct{} `cbor:",toarray"` // the state keeps some of these

	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
	// Version is the resourceVersion of this observation; comparable with versions of Jobs only.
	Version uint64 `json:"version"`
	// Nominal is the time that the Job was created for; zero for a Job without a nominal time.
	Nominal time.Time `json:"nominal,omitzero"`
	// Manual reports whether a user, not the clock, has started the Job: for Nominal if that is set, else for now.
	Manual   bool      `json:"manual,omitempty"`
	Created  time.Time `json:"created,omitzero"`
	Deleting bool      `json:"deleting,omitempty"`
	// Result is Complete or Failed, "" while the Job has not finished.
	Result RunResult `json:"result,omitempty"`
	// Finished is when the Job finished; zero before that.
	Finished time.Time `json:"finished,omitzero"`
	// Started and Reason are status.startTime and the reason of the final condition of a Job that has finished, cut to the length of a word.
	Started time.Time `json:"started,omitzero"`
	Reason  string    `json:"reason,omitempty"`
}

// RunResult is how a Job has finished.
type RunResult string

// The results of a Job.
const (
	RunComplete RunResult = "Complete"
	RunFailed   RunResult = "Failed"
)

// RunObserved is an observation of a Job for the ScheduledJob that owns it. The Job itself has a JobObserved of its own.
type RunObserved struct {
	Run Run `json:"run"`
}

// RunGone reports that a Job of the ScheduledJob no longer exists. Its Run is the last observation, and Version that of the
// deletion. If a GET found nothing, only Name and UID are meaningful.
type RunGone struct {
	Run Run `json:"run"`
}

// RunMissing reports that no Job of the ScheduledJob has that name. It answers a FindRun by its ID, because a name may be looked
// for more than once, and the Job may be created in between.
type RunMissing struct {
	Name string `json:"name"`
	ID   string `json:"id"`
}

// Announced reports that the bus has confirmed the public event with that ID.
type Announced struct {
	ID string `json:"id"`
}

// The facts about ScheduledJobs.
const (
	TypeScheduledJobObserved Type = "ScheduledJobObserved"
	TypeScheduledJobGone     Type = "ScheduledJobGone"
	TypeScheduleListed       Type = "ScheduleListed"
	TypeScheduleDue          Type = "ScheduleDue"
	TypeRunObserved          Type = "RunObserved"
	TypeRunGone              Type = "RunGone"
	TypeRunMissing           Type = "RunMissing"
	TypeAnnounced            Type = "Announced"
)

// Type implements Event.
func (ScheduledJobObserved) Type() Type { return TypeScheduledJobObserved }

// Type implements Event.
func (ScheduledJobGone) Type() Type { return TypeScheduledJobGone }

// Type implements Event.
func (ScheduleListed) Type() Type { return TypeScheduleListed }

// Type implements Event.
func (ScheduleDue) Type() Type { return TypeScheduleDue }

// Type implements Event.
func (RunObserved) Type() Type { return TypeRunObserved }

// Type implements Event.
func (RunGone) Type() Type { return TypeRunGone }

// Type implements Event.
func (RunMissing) Type() Type { return TypeRunMissing }

// Type implements Event.
func (Announced) Type() Type { return TypeAnnounced }

func (e ScheduledJobObserved) id() string {
	return observation(string(e.ScheduledJob.UID), e.ScheduledJob.Version)
}
func (e ScheduledJobGone) id() string { return strconv.FormatUint(e.Version, 10) }
func (e ScheduleListed) id() string   { return e.ID }
func (e ScheduleDue) id() string      { return NominalHash(e.Nominal) }
func (e RunObserved) id() string      { return observation(string(e.Run.UID), e.Run.Version) }
func (e RunGone) id() string          { return observation(string(e.Run.UID), e.Run.Version) }
func (e RunMissing) id() string       { return e.Name + "/" + e.ID }
func (e Announced) id() string        { return e.ID }
