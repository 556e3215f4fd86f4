package effect

// Kinds of effects: their names in logs, metrics, transcripts, and in refusals on the bus.
const (
	KindCreatePod           = "CreatePod"
	KindFindPod             = "FindPod"
	KindRemoveFinalizer     = "RemoveFinalizer"
	KindAddFinalizer        = "AddFinalizer"
	KindAdoptPod            = "AdoptPod"
	KindReleasePod          = "ReleasePod"
	KindDeletePod           = "DeletePod"
	KindDeleteJob           = "DeleteJob"
	KindReadParameters      = "ReadParameters"
	KindWriteJobStatus      = "WriteJobStatus"
	KindCreateJob           = "CreateJob"
	KindFindRun             = "FindRun"
	KindWriteScheduleStatus = "WriteScheduleStatus"
	KindDeleteScheduledJob  = "DeleteScheduledJob"
	KindDeleteRun           = "DeleteRun"
	KindTakeInventory       = "TakeInventory"
	KindSetTimer            = "SetTimer"
	KindAnnounce            = "Announce"
	KindReportDropped       = "ReportDropped"
)

// Kind implements Effect.
func (CreatePod) Kind() string { return KindCreatePod }

// Kind implements Effect.
func (FindPod) Kind() string { return KindFindPod }

// Kind implements Effect.
func (RemoveFinalizer) Kind() string { return KindRemoveFinalizer }

// Kind implements Effect.
func (AddFinalizer) Kind() string { return KindAddFinalizer }

// Kind implements Effect.
func (AdoptPod) Kind() string { return KindAdoptPod }

// Kind implements Effect.
func (ReleasePod) Kind() string { return KindReleasePod }

// Kind implements Effect.
func (DeletePod) Kind() string { return KindDeletePod }

// Kind implements Effect.
func (DeleteJob) Kind() string { return KindDeleteJob }

// Kind implements Effect.
func (ReadParameters) Kind() string { return KindReadParameters }

// Kind implements Effect.
func (WriteJobStatus) Kind() string { return KindWriteJobStatus }

// Kind implements Effect.
func (CreateJob) Kind() string { return KindCreateJob }

// Kind implements Effect.
func (FindRun) Kind() string { return KindFindRun }

// Kind implements Effect.
func (WriteScheduleStatus) Kind() string { return KindWriteScheduleStatus }

// Kind implements Effect.
func (DeleteScheduledJob) Kind() string { return KindDeleteScheduledJob }

// Kind implements Effect.
func (DeleteRun) Kind() string { return KindDeleteRun }

// Kind implements Effect.
func (TakeInventory) Kind() string { return KindTakeInventory }

// Kind implements Effect.
func (SetTimer) Kind() string { return KindSetTimer }

// Kind implements Effect.
func (Announce) Kind() string { return KindAnnounce }

// Kind implements Effect.
func (ReportDropped) Kind() string { return KindReportDropped }
