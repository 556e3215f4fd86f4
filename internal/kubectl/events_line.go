package kubectl

import (
	"fmt"
	"strings"
	"time"

	"github.com/jobstream/jobstream/events"
)

// eventLine describes a public event in one line: when it happened, its type, its object, and what it tells.
func eventLine(p events.Public) string {
	kind, object, told := "", events.Reference{}, ""
	switch e := p.(type) {
	case events.JobStarted:
		kind, object, told = "JobStart", e.Job, startTold(e)
	case events.JobFinished:
		kind, object, told = "JobFinish", e.Job, endTold(e)
	case events.PodFinished:
		kind, object, told = "PodFinish", e.Job, podTold(e)
	case events.TickDecided:
		kind, object, told = "TickDecided", e.ScheduledJob, tickTold(e)
	}
	return fmt.Sprintf("%s  %-11s  %s/%s  %s", events.PublicTime(p).UTC().Format(time.RFC3339), kind, object.Namespace, object.Name, told)
}

func startTold(e events.JobStarted) string {
	told := fmt.Sprintf("parallelism %d", e.Parallelism)
	if e.Completions != nil {
		told = fmt.Sprintf("%d completions, %s", *e.Completions, told)
	}
	return told + ownerTold(e.Owner)
}

func endTold(e events.JobFinished) string {
	told := fmt.Sprintf("%s: %d succeeded, %d failed", outcome(string(e.Result), e.Reason), e.Succeeded, e.Failed)
	if !e.Start.IsZero() {
		told += " in " + seconds(e.DurationSeconds)
	}
	if e.FailedIndexes != "" {
		told += "; failed indexes " + e.FailedIndexes
	}
	if f := e.LastFailure; f != nil && e.Result == events.JobFailed {
		told += "; last failure: Pod " + f.Pod + containerTold(f.Container, f.ExitCode, f.Reason) + nodeTold(f.Node)
	}
	return told + ownerTold(e.Owner)
}

func podTold(e events.PodFinished) string {
	told := fmt.Sprintf("Pod %s: %s", e.Pod.Name, outcome(string(e.Result), e.Reason))
	if e.Index != nil {
		told += fmt.Sprintf(", index %d", *e.Index)
	}
	if c := e.Container; c != nil && c.ExitCode != 0 {
		told += containerTold(c.Name, c.ExitCode, c.Reason)
	}
	if !e.Start.IsZero() {
		told += " in " + seconds(e.DurationSeconds)
	}
	return told + nodeTold(e.Node)
}

func tickTold(e events.TickDecided) string {
	told := outcome(string(e.Verdict), e.Reason)
	if !e.Until.IsZero() {
		told += fmt.Sprintf(": %d times until %s", e.Count, e.Until.UTC().Format(time.RFC3339))
	}
	if e.Job != nil {
		told += ": Job " + e.Job.Name
	}
	if e.Message != "" {
		told += ": " + e.Message
	}
	return told
}

func ownerTold(o *events.RunOwner) string {
	switch {
	case o == nil:
		return ""
	case o.Nominal.IsZero():
		return "; started by a user from " + o.ScheduledJob.Name
	}
	return fmt.Sprintf("; of %s, %s", o.ScheduledJob.Name, o.Nominal.UTC().Format(time.RFC3339))
}

func containerTold(container string, code int32, reason string) string {
	var told []string
	if container != "" {
		told = append(told, "container "+container)
	}
	if code != 0 {
		told = append(told, fmt.Sprintf("exit code %d", code))
	}
	if reason != "" {
		told = append(told, reason)
	}
	if len(told) == 0 {
		return ""
	}
	return " (" + strings.Join(told, ", ") + ")"
}

func nodeTold(node string) string {
	if node == "" {
		return ""
	}
	return " on " + node
}

func outcome(word, reason string) string {
	if reason == "" {
		return word
	}
	return word + "(" + reason + ")"
}

func seconds(n int64) string { return (time.Duration(n) * time.Second).String() }
