package replay

import (
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/jobstream/jobstream/functions/catalog"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/progress"
)

const (
	// unanswered marks an effect whose result no fact shows, repeated one that was decided on again nevertheless.
	unanswered = "   # no fact shows that it was done"
	repeated   = "   # decided on again, although a fact shows its result"
	// widest is the number of bytes of a line: a status may list 500 UIDs.
	widest = 2000
	millis = "15:04:05.000"
)

// WriteScript writes the turns in the form of the transcripts in functions/*/testdata: what happened, a line of dashes, and what the
// function decided. A comment has the time.
func (t Transcript) WriteScript(out io.Writer) error {
	p := printer{out: out}
	for _, line := range t.about() {
		p.line("# " + line)
	}
	for i, turn := range t.Turns {
		if turn.silent() {
			continue
		}
		p.line("")
		p.line("# " + p.clock(turn.At))
		if turn.Timer {
			since := time.Duration(0)
			if i > 0 {
				since = turn.At.Sub(t.Turns[i-1].At)
			}
			p.line("advance " + since.Round(time.Millisecond).String())
		}
		for _, word := range turn.causes() {
			p.line(word)
		}
		p.line("----")
		if turn.Timer {
			p.line(turn.At.UTC().Format(time.TimeOnly) + " the timer fires")
		}
		for _, line := range turn.lines() {
			p.line(line)
		}
		if !turn.Timer && len(turn.lines()) == 0 {
			p.line("(nothing)")
		}
	}
	return p.err
}

// WriteDecisions writes the last turns in which the function decided on anything, all if last is 0, and what is stored.
func (t Transcript) WriteDecisions(out io.Writer, last int) error {
	p := printer{out: out}
	for _, line := range t.about() {
		p.line(line)
	}
	for _, line := range t.stored() {
		p.line(line)
	}
	turns := t.decided()
	left := 0
	if last > 0 && len(turns) > last {
		left = len(turns) - last
		turns = turns[left:]
	}
	p.line("")
	switch {
	case left > 0:
		p.line(fmt.Sprintf("The last %d of %d decisions; --last=0 shows all:", len(turns), len(turns)+left))
	case len(turns) == 0:
		p.line("No fact has caused a decision.")
	default:
		p.line("Decisions:")
	}
	for _, turn := range turns {
		if date := turn.At.UTC().Format(time.DateOnly); date != p.date {
			p.date = date
			p.line(date + ", UTC")
		}
		head, causes := turn.At.UTC().Format(millis), turn.causes()
		if turn.Timer {
			causes = []string{"the timer fires"}
		}
		for i, cause := range causes {
			if i > 0 {
				head = ""
			}
			p.line(fmt.Sprintf("%*s  %s", len(millis), head, cause))
		}
		for _, line := range turn.lines() {
			p.line(strings.Repeat(" ", len(millis)) + "  > " + line)
		}
	}
	return p.err
}

// decided returns the turns with decisions.
func (t Transcript) decided() (all []Turn) {
	for _, turn := range t.Turns {
		if len(turn.lines()) > 0 {
			all = append(all, turn)
		}
	}
	return all
}

// about describes the record and what limits its use.
func (t Transcript) about() []string {
	r := t.Record
	kind := map[catalog.Name]string{catalog.Job: "Job", catalog.ScheduledJob: "ScheduledJob"}[catalog.Name(r.Function)]
	lines := []string{fmt.Sprintf("%s %s/%s, UID %s: %s, folded by version %d of the function %s", kind, r.Namespace, r.Name, r.UID, count(len(r.Facts), "stored fact"),
		t.FunctionVersion, r.Function)}
	if n := len(r.Facts); n > 0 {
		lines = append(lines, fmt.Sprintf("stored from %s to %s; the bus keeps facts for %s, until its stream is full", stamp(r.Facts[0].Stored), stamp(r.Facts[n-1].Stored), t.kept()))
		if !t.Whole {
			lines = append(lines, "older facts are gone: the first decision takes an inventory of what later facts show, so names and serials of Pods may differ from what the reconciler decided")
		}
	}
	if len(r.Facts) == 0 {
		lines = append(lines, "the bus keeps facts for "+t.kept()+", until its stream is full: nothing has happened to the object since, or it does not belong to jobstream")
	}
	if t.Unread > 0 {
		lines = append(lines, count(t.Unread, "fact")+" of these cannot be read; for those of another version use the plugin of the reconciler's release")
	}
	if t.PerTurn > 1 {
		lines = append(lines, fmt.Sprintf("%d facts were folded at a time", t.PerTurn))
	}
	if !t.Strayed.IsZero() {
		lines = append(lines, fmt.Sprintf("at %s a fact shows a status to which no decision here led: the API server refused a request, or it or the reconciler was slow; from about then on the reconciler may have decided otherwise", stamp(t.Strayed)))
	}
	if !t.Cut.IsZero() {
		lines = append(lines, fmt.Sprintf("cut at %s, where no fact came for a long time and only timers fired", stamp(t.Cut)))
	}
	return lines
}

// kept returns for how long the bus keeps facts.
func (t Transcript) kept() string {
	return duration.HumanDuration(time.Duration(t.Record.MaxAgeSeconds) * time.Second)
}

// stored describes the stored state, and what the function decides from it now.
func (t Transcript) stored() (lines []string) {
	r := t.Record
	effects, ok, err := Next(r)
	if !ok {
		return []string{"no state is stored: the object needs none any more, or it was never seen"}
	}
	lines = append(lines, fmt.Sprintf("state: revision %d, %d bytes, written %s ago", r.State.Revision, len(r.State.Data), duration.HumanDuration(r.Collected.Sub(r.State.Stored))))
	if err != nil {
		return append(lines, "state: "+err.Error())
	}
	var wants []string
	waits := ""
	for _, e := range effects {
		if timer, is := e.(effect.SetTimer); is {
			waits = fmt.Sprintf("until %s (%s) or the next fact", stamp(timer.At), until(timer.At.Sub(r.Collected)))
			continue
		}
		wants = append(wants, e.String())
	}
	for _, e := range wants {
		lines = append(lines, "now it wants: "+e)
	}
	switch {
	case waits != "":
		lines = append(lines, "now it waits "+waits)
	case len(wants) == 0:
		lines = append(lines, "now it waits for the next fact, and has nothing to do")
	}
	return lines
}

func until(d time.Duration) string {
	if d <= 0 {
		return "now"
	}
	return "in " + duration.HumanDuration(d)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// silent reports whether the facts of a turn only confirm what answers had shown, and nothing follows.
func (t Turn) silent() bool { return !t.Timer && len(t.Words) == 0 && len(t.lines()) == 0 }

// causes returns what happened, at least by the type of the fact.
func (t Turn) causes() []string {
	if len(t.Words) > 0 || t.Timer {
		return t.Words
	}
	var all []string
	for _, f := range t.Facts {
		all = append(all, string(f))
	}
	return all
}

// lines returns the decisions. The engine sets no timer that is set already, so that is left out.
func (t Turn) lines() (all []string) {
	for _, s := range t.Steps {
		line := s.Effect.String()
		switch {
		case s.Set:
			continue
		case s.Effect.Kind() == effect.KindSetTimer:
		case s.Unanswered:
			line += unanswered
		case s.Repeated:
			line += repeated
		}
		all = append(all, line)
	}
	if t.Failed != "" {
		all = append(all, "cannot decide: "+t.Failed)
	}
	return all
}

// printer writes lines that are safe to print: names and reasons come from users.
type printer struct {
	out  io.Writer
	err  error
	date string
}

func (p *printer) line(text string) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.out, progress.Clean(text, widest))
	}
}

// clock returns the time of day, after the date where that has changed.
func (p *printer) clock(at time.Time) string {
	at = at.UTC()
	if date := at.Format(time.DateOnly); date != p.date {
		p.date = date
		return date + " " + at.Format(millis)
	}
	return at.Format(millis)
}
