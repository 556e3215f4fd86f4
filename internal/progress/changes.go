package progress

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// How often the counts of a Job are printed without a terminal: less often the longer it runs, so that a file has a few lines for
// a minute and some more for a day.
const (
	tellEvery     = time.Second
	tellLeast     = time.Minute
	tellFraction  = 10 // of the time since its first line
	maxListOfLine = 60 // characters of a list of indexes
)

// Change is one line about one Job: words and numbers as key=value, to be read, searched and cut apart.
type Change struct {
	// Job is the Job's name, with its namespace if the board shows several.
	Job string
	// Text is what follows the name.
	Text string
}

// String is the whole line.
func (c Change) String() string { return c.Job + " " + c.Text }

// telling is what has been printed about a Job, and when.
type telling struct {
	first, last time.Time
	phase       phase
	text        string
}

// Changes returns what has changed since the previous call: changes of state at once, counts from time to time.
func (b *Board) Changes(now time.Time) []Change {
	var out []Change
	for _, k := range b.jobs {
		k.lookAtPods()
		t := &k.told
		if t.first.IsZero() {
			t.first = now
		}
		text := k.counts()
		every := min(max(now.Sub(t.first)/tellFraction, tellEvery), tellLeast)
		if text == t.text || k.phase() == t.phase && now.Sub(t.last) < every {
			continue
		}
		t.last, t.phase, t.text = now, k.phase(), text
		out = append(out, Change{Job: b.label(k), Text: text + k.times(now)})
	}
	return out
}

// counts returns the values whose change makes a Job's line due.
func (k *job) counts() string {
	var b strings.Builder
	fmt.Fprintf(&b, "state=%s succeeded=%d", k.phase(), k.succeeded)
	if k.completions >= 0 {
		fmt.Fprintf(&b, "/%d", k.completions)
	}
	fmt.Fprintf(&b, " active=%d failed=%d", k.active, k.failed)
	if k.reason != "" {
		b.WriteString(" reason=" + value(k.reason))
	}
	if text := some(k.failedIndexes.set, maxListOfLine); text != "" {
		b.WriteString(" failedIndexes=" + value(text))
	}
	if k.message != "" {
		b.WriteString(" message=" + value(k.message))
	}
	if k.obstacle != "" && !k.over() {
		b.WriteString(" condition=" + value(k.obstacle))
	}
	return b.String()
}

// times returns the values that change constantly, and do not make a line due.
func (k *job) times(now time.Time) string {
	var b strings.Builder
	if !k.started.IsZero() {
		b.WriteString(" elapsed=" + span(k.elapsed(now)))
	}
	if pace := pace(k.rate.perSecond(now)); pace != "" && !k.over() {
		b.WriteString(" rate=" + pace)
	}
	if left := k.timeLeft(now); left > 0 {
		b.WriteString(" left=" + span(left))
	}
	return b.String()
}

// value quotes a text of several words, so that no text of an object can be mistaken for another key.
func value(text string) string {
	word := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.,:/", r)
	}
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !word(r) }) {
		return text
	}
	return strconv.Quote(text)
}
