package app

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/jobstream/jobstream/internal/cluster"
)

// shownRows is the largest number of objects of a kind in the table; JSON has all of them.
const shownRows = 50

// What becomes of each kind while no reconciler runs.
const (
	withoutUsSchedules = "While no reconciler runs they create no Job. Until then they create new ones: suspend them, or add --suspend-schedules."
	withoutUsJobs      = "While no reconciler runs they stay as they are, because spec.managedBy cannot be changed and the built-in controller ignores them. Their " +
		"Pods run to their end, are neither counted nor replaced, and stay with their finalizer. When one runs again, it goes on with exact counts. " +
		"To end one, delete it. One that is deleted in the foreground waits for a reconciler."
	withoutUsUnmanaged = "The built-in controller continues those without spec.managedBy, if it is switched on."
	withoutUsPods      = "kube-controller-manager removes their finalizer when their Job is gone. While the Job exists, only a reconciler does."
)

// drained is the result in its JSON form.
type drained struct {
	cluster.Remains
	// Suspended and NotSuspended are the results of --suspend-schedules.
	Suspended    []change `json:"suspended,omitempty"`
	NotSuspended []change `json:"notSuspended,omitempty"`
}

// sum returns one line about what is left.
func sum(r cluster.Remains) string {
	held, paused := len(r.Pods), 0
	for _, j := range r.Jobs {
		held += j.HeldPods
		if j.Suspended {
			paused++
		}
	}
	jobs := plural(len(r.Jobs), "unfinished Job")
	if paused > 0 {
		jobs += fmt.Sprintf(" (%d suspended)", paused)
	}
	return "left: " + jobs + ", " + plural(held, "Pod") + " with our finalizer, " + plural(len(r.ScheduledJobs), "ScheduledJob") + " at work"
}

func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

func (d *drain) report(left cluster.Remains) error {
	if d.json {
		return writeJSON(d.out, drained{left, d.suspended, d.untouched})
	}
	for _, s := range d.suspended {
		fmt.Fprintf(d.out, "suspended ScheduledJob %s/%s\n", s.Namespace, s.Name)
	}
	for _, s := range d.untouched {
		fmt.Fprintf(d.out, "cannot suspend ScheduledJob %s/%s: %s\n", s.Namespace, s.Name, printable(oneLine(s.Error)))
	}
	if left.Empty() {
		_, err := fmt.Fprintln(d.out, "nothing of jobstream is left unfinished: the programs may go (docs/uninstall.md)")
		return err
	}
	var schedules, jobs, pods []string
	for _, s := range left.ScheduledJobs {
		state := "at work"
		if s.Suspended {
			state = "suspended, and no reconciler has processed it"
		}
		schedules = append(schedules, fmt.Sprintf("%s\t%s\t%s", s.Namespace, s.Name, state))
	}
	unmanaged := false
	for _, j := range left.Jobs {
		unmanaged = unmanaged || j.Unmanaged
		jobs = append(jobs, fmt.Sprintf("%s\t%s\t%s\t%d\t%d\t%d\t%d", j.Namespace, j.Name, jobState(j), j.Active, j.Succeeded, j.Failed, j.HeldPods))
	}
	for _, p := range left.Pods {
		pods = append(pods, fmt.Sprintf("%s\t%s", p.Namespace, p.Name))
	}
	explained := withoutUsJobs
	if unmanaged {
		explained += " " + withoutUsUnmanaged
	}
	w := &printer{out: d.out}
	w.table("ScheduledJobs at work", "NAMESPACE\tNAME\tSTATE", schedules, withoutUsSchedules)
	w.table("Unfinished Jobs", "NAMESPACE\tNAME\tSTATE\tACTIVE\tSUCCEEDED\tFAILED\tPODS WITH FINALIZER", jobs, explained)
	w.table("Pods with our finalizer whose Job has finished or is gone", "NAMESPACE\tNAME", pods, withoutUsPods)
	return w.err
}

func jobState(j cluster.RemainingJob) string {
	state := "at work"
	switch {
	case j.Deleting:
		state = "being deleted"
	case j.Suspended:
		state = "suspended"
	}
	if j.Unmanaged {
		state += ", not managed"
	}
	return state
}

// printer remembers the first error.
type printer struct {
	out io.Writer
	err error
}

func (p *printer) table(title, header string, rows []string, explained string) {
	if len(rows) == 0 || p.err != nil {
		return
	}
	fmt.Fprintf(p.out, "%s: %d\n", title, len(rows))
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, header)
	fmt.Fprintln(w, strings.Join(rows[:min(len(rows), shownRows)], "\n"))
	if p.err = w.Flush(); p.err != nil {
		return
	}
	if n := len(rows) - shownRows; n > 0 {
		fmt.Fprintf(p.out, "... and %d more: -o json lists all\n", n)
	}
	_, p.err = fmt.Fprintln(p.out, explained+"\n")
}
