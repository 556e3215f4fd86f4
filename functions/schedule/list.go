package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
)

// The largest numbers of entries of a List.
const (
	MaxSchedules = 10
	MaxExclude   = 50
)

// List is several schedules, and what they leave out.
type List struct {
	// Schedules are 1 to MaxSchedules texts as Parse takes them. @every is valid only by itself.
	Schedules []string
	// Exclude has up to MaxExclude entries, which name readings of the wall clock:
	//
	//	2026-12-24               a date
	//	2026-12-24/2027-01-06    from one date to another, both included, at most a year
	//	* 0-6 * * *              five fields of a schedule: whole minutes that match; here from 0:00 to 6:59
	//	* * * 12 SUN             here the Sundays in December
	//	0-29 * * * * *           six fields: seconds that match
	Exclude []string
}

// ParseList parses several schedules. The Schedule has the times of all of them, each once, apart from those for which the wall clock
// would show a reading that is excluded. Excluded returns those.
//
// The errors are those of Parse, with the field "schedules[i]" or "exclude[i]". That everything is excluded is an error, too.
func ParseList(l List, o Options) (Schedule, error) {
	switch {
	case len(l.Schedules) == 1 && len(l.Exclude) == 0:
		s, err := Parse(l.Schedules[0], o)
		return s, in(err, "schedules[0]")
	case len(l.Schedules) == 0 || len(l.Schedules) > MaxSchedules:
		return Schedule{}, &Error{InvalidSchedule, "schedules", fmt.Sprintf("%d entries; write 1 to %d", len(l.Schedules), MaxSchedules)}
	case len(l.Exclude) > MaxExclude:
		return Schedule{}, &Error{InvalidSchedule, "exclude", fmt.Sprintf("%d entries; write at most %d, and a range of dates, such as 2026-12-24/2027-01-06, in place of many dates", len(l.Exclude), MaxExclude)}
	}
	loc, err := o.zone()
	if err != nil {
		return Schedule{}, err
	}
	var tame, wild, except []part
	var texts []string
	for i, spec := range l.Schedules {
		words, err := expand(spec)
		if err == nil && words[0] == "@every" {
			err = invalid("@every has no wall clock, so it stands alone, without other schedules and without exclude; write fields, such as */5 * * * *")
		}
		var c *cronFields
		var text string
		if err == nil {
			c, text, err = parseFields(words, o.Seed)
		}
		switch {
		case err != nil:
			return Schedule{}, in(err, fmt.Sprintf("schedules[%d]", i))
		case c.wild:
			wild = append(wild, &c.calendar)
		default:
			tame = append(tame, &c.calendar)
		}
		texts = append(texts, text)
	}
	for i, text := range l.Exclude {
		p, err := parseExclude(text, o.Seed)
		if err != nil {
			return Schedule{}, in(err, fmt.Sprintf("exclude[%d]", i))
		}
		except = append(except, p)
	}
	s := Schedule{text: strings.Join(texts, "; "), loc: loc, times: combine(tame, wild, except, false, loc)}
	if len(except) > 0 {
		s.text += " except " + strings.Join(l.Exclude, "; ")
		s.excluded = combine(tame, wild, except, true, loc)
	}
	if _, ok := s.times.next(0); !ok {
		return Schedule{}, &Error{InvalidSchedule, "exclude", "it leaves no time at all; remove an entry"}
	}
	return s, nil
}

// combine returns the times of the readings that any of these parts has, apart from the excluded ones; or those alone.
func combine(tame, wild, except []part, left bool, loc *time.Location) times {
	months := 41 * 12 // 29 February is a given weekday at least every 40 years
	for _, p := range except {
		if _, ok := p.(dates); ok {
			months += 14
		}
	}
	set := func(in []part) *mix { return &mix{in: in, except: except, left: left, search: months} }
	switch {
	case len(wild) == 0:
		return &local{readings: set(tame), loc: loc}
	case len(tame) == 0:
		return &local{readings: set(wild), loc: loc, wild: true}
	}
	all := append(append([]part{}, tame...), wild...)
	return &both{&local{readings: set(tame), loc: loc}, &local{readings: set(wild), loc: loc, wild: true}, set(all)}
}

// in returns the error with another field.
func in(err error, field string) error {
	var e *Error
	if errors.As(err, &e) && e.Field == "schedule" {
		return &Error{e.Reason, field, e.Message}
	}
	return err
}

// parseExclude parses one entry of List.Exclude.
func parseExclude(text, seed string) (part, error) {
	if len(text) > maxLength {
		return nil, invalid("%d characters are too long; write at most %d", len(text), maxLength)
	}
	words := strings.Fields(text)
	switch len(words) {
	case 1:
		return parseDates(words[0])
	case len(fields) - 1: // a minute is all of its seconds
		words = append([]string{"*"}, words...)
	case len(fields):
	default:
		return nil, invalid("%q is not known; write a date, such as 2026-12-24, two with a slash between them, or five fields, such as \"* 0-6 * * *\"", text)
	}
	c, _, err := parseFields(words, seed)
	if err != nil {
		return nil, err
	}
	return &c.calendar, nil
}

// longestDates is the largest number of days in one entry.
const longestDates = 366

func parseDates(text string) (part, error) {
	a, b, ranged := strings.Cut(text, "/")
	if !ranged {
		b = a
	}
	first, errA := time.Parse(time.DateOnly, a)
	last, errB := time.Parse(time.DateOnly, b)
	p := dates{first.Unix() / daySeconds, last.Unix() / daySeconds}
	switch err := cmp.Or(errA, errB); {
	case err != nil || first.Unix() < 0:
		return nil, invalid("%q is not a date; write one of 1970 or later, such as 2026-12-24, two with a slash between them, or five fields, such as \"* 0-6 * * *\"", text)
	case p.last < p.first:
		return nil, invalid("%q ends before it begins; write the earlier date first", text)
	case p.last-p.first >= longestDates:
		return nil, invalid("%q is longer than a year; write several entries", text)
	}
	return p, nil
}

// Excluded returns the times that ParseList has left out; the empty set for other schedules.
func (s Schedule) Excluded() Schedule { return Schedule{loc: s.loc, times: s.excluded} }
