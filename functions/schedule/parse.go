package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Options determine the meaning of a schedule together with its text.
type Options struct {
	// Location is the zone of the wall clock; nil is UTC. time.Local is rejected: it is another zone on another machine.
	Location *time.Location
	// Seed is the input of the hash for H: the object's UID, so that objects are spread and each always gets the same times.
	Seed string
	// Anchor is where the intervals of @every begin: the object's creation, without fractions of a second. The zero time is
	// valid.
	Anchor time.Time
}

func (o Options) zone() (*time.Location, error) {
	switch {
	case o.Location == nil:
		return time.UTC, nil
	case o.Location.String() == time.Local.String():
		return nil, &Error{UnknownTimeZone, "timeZone", `"Local" is another zone on every machine; write an IANA name such as Europe/Berlin, or nothing for UTC`}
	}
	return o.Location, nil
}

// The reasons of an Error, with CronJob's words for its Events. They are valid reasons of a condition.
const (
	InvalidSchedule = "InvalidSchedule"
	UnknownTimeZone = "UnknownTimeZone"
)

// Error tells a user what is wrong with a field of their object, and what to write instead.
type Error struct {
	Reason  string // InvalidSchedule or UnknownTimeZone
	Field   string // of the spec: schedule or timeZone
	Message string
}

func (e *Error) Error() string { return e.Field + ": " + e.Message }

// maxLength is the longest text of a schedule in bytes. Naming each of the 60 minutes takes 169.
const maxLength = 256

// fields are the fields of a schedule in order, with robfig/cron's names and bounds.
var fields = [...]struct {
	name   string
	option cron.ParseOption
	all    numbers
	hashed numbers // the values that H by itself may take
	values string
	set    func(*cron.SpecSchedule) uint64
}{
	{"second", cron.Second, numbers{0, 59}, numbers{0, 59}, "0-59", func(s *cron.SpecSchedule) uint64 { return s.Second }},
	{"minute", cron.Minute, numbers{0, 59}, numbers{0, 59}, "0-59", func(s *cron.SpecSchedule) uint64 { return s.Minute }},
	{"hour", cron.Hour, numbers{0, 23}, numbers{0, 23}, "0-23", func(s *cron.SpecSchedule) uint64 { return s.Hour }},
	{"day of month", cron.Dom, numbers{1, 31}, numbers{1, 28}, "1-31", func(s *cron.SpecSchedule) uint64 { return s.Dom }},
	{"month", cron.Month, numbers{1, 12}, numbers{1, 12}, "1-12 or JAN-DEC", func(s *cron.SpecSchedule) uint64 { return s.Month }},
	{"day of week", cron.Dow, numbers{0, 6}, numbers{0, 6}, "0-6 or SUN-SAT (0 is Sunday)", func(s *cron.SpecSchedule) uint64 { return s.Dow }},
}

const hourField = 2

// names are the descriptors of robfig/cron except for @every.
var names = map[string]string{
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
	"@monthly":  "0 0 1 * *",
	"@weekly":   "0 0 * * 0",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@hourly":   "0 * * * *",
}

// Parse parses the schedule of a ScheduledJob, which extends that of a CronJob:
//
//	30 2 * * MON-FRI        minute, hour, day of month, month, day of week
//	*/10 30 2 * * *         the same with seconds before them
//	H H(0-5) * * *          H is a number that a hash of the Seed chooses: in the field, or in a range of it
//	H/15 * * * *            every 15th from a number that the hash chooses
//	@daily                  and @yearly, @annually, @monthly, @weekly, @midnight, @hourly
//	@every 1h30m            Anchor + 1h30m, Anchor + 3h, …: whole seconds, at least one
//
// The fields are those of robfig/cron v3, which CronJob uses: *, ?, a, a-b, lists, steps /n, names of months and weekdays in any
// case. If day of month and day of week are both restricted, either suffices. Parse rejects a few things that robfig/cron accepts
// by accident, such as *-5 or empty elements of a list, and TZ= and CRON_TZ=, as newer API servers do.
//
// Every error is an *Error. A schedule that can never be due, such as 30 February, is an error.
func Parse(spec string, o Options) (Schedule, error) {
	loc, err := o.zone()
	if err != nil {
		return Schedule{}, err
	}
	words, err := expand(spec)
	switch {
	case err != nil:
		return Schedule{}, err
	case words[0] == "@every":
		return parseEvery(words[1:], o.Anchor, loc)
	}
	c, text, err := parseFields(words, o.Seed)
	if err != nil {
		return Schedule{}, err
	}
	return Schedule{text: text, loc: loc, times: c.in(loc)}, nil
}

// expand returns the words of a schedule: five or six fields, also for a name, or those of @every.
func expand(spec string) ([]string, error) {
	if len(spec) > maxLength {
		return nil, invalid("%d characters are too long; write at most %d, with ranges a-b and steps /n in place of lists", len(spec), maxLength)
	}
	words := strings.Fields(spec)
	switch {
	case len(words) == 0:
		return nil, invalid(`nothing is written; write five fields, such as "30 2 * * *", or a name, such as @daily`)
	case strings.Contains(words[0], "TZ="):
		return nil, invalid("%q does not belong here; write the zone into the field timeZone", words[0])
	case words[0][0] == '@' && words[0] != "@every":
		text, ok := names[words[0]]
		if !ok || len(words) > 1 {
			return nil, invalid("%q is not known; write @yearly, @monthly, @weekly, @daily, @hourly, @every with a duration, or five fields", strings.Join(words, " "))
		}
		return strings.Fields(text), nil
	}
	return words, nil
}

// cronFields is what five or six fields mean.
type cronFields struct {
	calendar
	wild bool // the hour follows the wall clock
}

func (c *cronFields) in(loc *time.Location) times {
	return &local{readings: &c.calendar, loc: loc, wild: c.wild}
}

// parseFields returns the readings that match five or six fields, and the fields without H.
func parseFields(words []string, seed string) (*cronFields, string, error) {
	given := len(words)
	switch given {
	case len(fields) - 1:
		words = append([]string{"0"}, words...)
	case len(fields):
	default:
		return nil, "", invalid("%d fields; write five, for minute, hour, day of month, month and day of week, or six, with seconds before them", given)
	}
	var sets [len(fields)]uint64
	for i, f := range fields {
		text, set, err := parseField(i, words[i], seed)
		if err != nil {
			return nil, "", invalid("%s %q: %v; %s takes %s, *, a-b, lists a,b, steps /n, and H", f.name, words[i], err, f.name, f.values)
		}
		words[i], sets[i] = text, set
	}
	const star = 1 << 63 // robfig/cron marks a set that came from a star
	const all = star - 1
	c := calendar{
		second: sets[0] & all, minute: sets[1] & all, hour: sets[2] & all, dom: sets[3] & all, month: sets[4] & all, dow: sets[5] & all,
		either: (sets[3]|sets[5])&star == 0,
	}
	if _, ok := c.next(0); !ok {
		return nil, "", invalid("it is never due, as month %s has no day %s; write a day that it has", words[4], words[3])
	}
	wild := words[hourField][0] == '*' || words[hourField][0] == '?'
	return &cronFields{c, wild}, strings.Join(words[len(words)-given:], " "), nil
}

// alphabet has every character of a term. robfig/cron accepts some more, such as the + of +5.
const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz*?/-()"

// parseField returns a field with its H replaced, and its set with robfig/cron's star bit.
func parseField(i int, word, seed string) (string, uint64, error) {
	terms := strings.Split(word, ",")
	for j, term := range terms {
		base, _, _ := strings.Cut(term, "/")
		switch {
		case term == "":
			return "", 0, errors.New("a comma with nothing beside it")
		case strings.ContainsFunc(term, func(r rune) bool { return !strings.ContainsRune(alphabet, r) }):
			return "", 0, errors.New("a character in it means nothing here")
		case len(base) > 1 && (base[0] == '*' || base[0] == '?'):
			return "", 0, fmt.Errorf("nothing but a step can follow %c", base[0])
		case base == "H" || strings.HasPrefix(base, "H("):
			text, err := hashed(i, term, seed)
			if err != nil {
				return "", 0, err
			}
			terms[j] = text
		}
	}
	text := strings.Join(terms, ",")
	parsed, err := cron.NewParser(fields[i].option).Parse(text)
	if err != nil {
		return "", 0, errors.New(strings.TrimSuffix(err.Error(), ": "+text))
	}
	return text, fields[i].set(parsed.(*cron.SpecSchedule)), nil
}

func parseEvery(words []string, anchor time.Time, loc *time.Location) (Schedule, error) {
	d, err := time.ParseDuration(strings.Join(words, ""))
	if err != nil || d < time.Second || d%time.Second != 0 {
		return Schedule{}, invalid("@every needs a duration of whole seconds, at least one, not %q; write, for example, @every 90s or @every 1h30m", strings.Join(words, " "))
	}
	at := min(max(anchor.Unix(), earliest), latest)
	return Schedule{text: "@every " + d.String(), loc: loc, times: every{anchor: at, step: int64(d / time.Second)}}, nil
}

func invalid(format string, args ...any) *Error {
	return &Error{InvalidSchedule, "schedule", fmt.Sprintf(format, args...)}
}
