package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// Result is the outcome of a run.
type Result struct {
	Seed uint64
	// Wrong is what the checker has found; it should be empty.
	Wrong []string
	// Lasted is how long faults occurred, Settled how long everything took to come to rest afterwards.
	Lasted, Settled time.Duration
	Faults          map[Kind]int
	// Jobs are those of users, Runs those of ScheduledJobs; Pods are all that were ever stored.
	Jobs, Runs, Pods, Lines int
	// Left are the Jobs that were drawn and not created, since too many were open.
	Left int
	// Verdicts and Events are distinct; Received includes repeats.
	Verdicts, Events, Received int
	// Stripped are Pods whose finalizer the built-in Job controller removed, Deaf wipes of events that were not received.
	Stripped, Deaf int
	// LatestTick is the longest delay of a Job behind its nominal time.
	LatestTick time.Duration
	// Heal is the longest time after the end of a fault until a Job was created for a nominal time after the fault. After is
	// that fault.
	Heal  time.Duration
	After Kind
}

func (r *run) result(w world, wrong findings) *Result {
	out := &Result{Seed: r.Seed, Wrong: wrong, Faults: map[Kind]int{}, Pods: len(w.lives), Lines: len(w.lines), Events: len(w.events)}
	for _, j := range w.jobs {
		if metav1.GetControllerOf(&j) != nil {
			out.Runs++
		}
	}
	out.Jobs = len(w.wants)
	r.user.mu.Lock()
	out.Left = r.user.left
	r.user.mu.Unlock()
	for _, e := range w.events {
		if e.Type == tickType {
			out.Verdicts++
		}
	}
	for _, l := range w.lives {
		if l.stripped {
			out.Stripped++
		}
	}
	r.recorder.mu.Lock()
	out.Received, out.Deaf = r.recorder.received, r.recorder.deafs
	r.recorder.mu.Unlock()
	r.storm.mu.Lock()
	defer r.storm.mu.Unlock()
	for _, d := range r.storm.done {
		out.Faults[d.Kind]++
	}
	out.measure(w, r.storm.done)
	return out
}

// measure examines the Jobs of the schedule that fires each second.
func (r *Result) measure(w world, faults []Done) {
	made := map[int64]time.Time{}
	for _, j := range w.jobs {
		at, err := time.Parse(time.RFC3339, j.Annotations[v1alpha1.NominalTimeAnnotation])
		if owner := metav1.GetControllerOf(&j); err != nil || owner == nil || owner.Name != "each-second" {
			continue
		}
		made[at.Unix()] = j.CreationTimestamp.Time
		r.LatestTick = max(r.LatestTick, j.CreationTimestamp.Sub(at))
	}
	for _, f := range faults {
		first := time.Duration(-1)
		for at, when := range made {
			if took := when.Sub(f.Ends); at > f.Ends.Unix() && took >= 0 && (first < 0 || took < first) {
				first = took
			}
		}
		if first > r.Heal {
			r.Heal, r.After = first, f.Kind
		}
	}
}

// Print prints a table.
func (r *Result) Print(out io.Writer) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(what string, format string, args ...any) {
		fmt.Fprintf(t, "%s\t%s\n", what, fmt.Sprintf(format, args...))
	}
	row("seed", "%d", r.Seed)
	row("minutes of chaos", "%.1f", r.Lasted.Minutes())
	total := 0
	for _, k := range Kinds {
		row(string(k), "%d", r.Faults[k])
		total += r.Faults[k]
	}
	row("faults", "%d", total)
	row("Jobs of users", "%d, and %d left out since the machine was busy", r.Jobs, r.Left)
	row("Jobs of schedules", "%d", r.Runs)
	row("Pods", "%d, of which %d have written a line", r.Pods, r.Lines)
	row("verdicts on ticks", "%d", r.Verdicts)
	row("public events", "%d, received %d times", r.Events, r.Received)
	row("finalizers that Kubernetes removed", "%d", r.Stripped)
	row("wipes of unreceived events", "%d", r.Deaf)
	row("latest tick", "%.0f s", r.LatestTick.Seconds())
	row("worst time to heal", "%.0f s, after: %s", r.Heal.Seconds(), r.After)
	row("time to rest at the end", "%.0f s", r.Settled.Seconds())
	row("wrong", "%d", len(r.Wrong))
	_ = t.Flush()
	const most = 40
	for i, w := range r.Wrong {
		if i == most {
			fmt.Fprintf(out, "  and %d more\n", len(r.Wrong)-most)
			break
		}
		fmt.Fprintf(out, "  %s\n", shorten(w))
	}
}

func shorten(text string) string {
	const most = 500
	text = strings.ReplaceAll(text, "\n", " ")
	return text[:min(len(text), most)]
}

// dump writes what the checker has seen into files.
func (r *run) dump(w world, wrong findings) (err error) {
	err = os.WriteFile(filepath.Join(r.Dir, "findings.txt"), []byte(strings.Join(wrong, "\n")+"\n"), 0o600)
	var lives []string
	for uid, l := range w.lives {
		lives = append(lives, fmt.Sprintf("%s %+v", uid, l))
	}
	for name, what := range map[string]any{
		"jobs.json": w.jobs, "pods.json": w.pods, "scheduledjobs.json": w.schedules, "observations.json": lives, "wants.json": w.wants,
		"faults.json": DrawFaults(r.Seed, r.Length), "tasks.json": DrawTasks(r.Seed, r.Length),
	} {
		text, e := json.MarshalIndent(what, "", " ")
		err = errors.Join(err, e, os.WriteFile(filepath.Join(r.Dir, name), text, 0o600))
	}
	return err
}
