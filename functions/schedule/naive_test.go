package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// naive is a schedule as a person would check it: does this reading of the clock match? It was written from crontab(5) and shares
// no code with the package. It reads neither H nor @.
type naive struct {
	second, minute, hour, dom, month, dow [64]bool
	either                                bool // of the days: neither field is a star
	wild                                  bool // the hour starts with a star

	day   int64 // the last one that was looked at, and whether it matched
	dayIs bool
}

func read(text string) *naive {
	words := strings.Fields(text)
	if len(words) == 5 {
		words = append([]string{"0"}, words...)
	}
	n := &naive{wild: strings.HasPrefix(words[2], "*") || strings.HasPrefix(words[2], "?"), day: -1 << 62}
	mark := func(set *[64]bool, word string, low, high int, names ...string) (star bool) {
		number := func(s string) int {
			if i := slices.Index(names, strings.ToUpper(s)); i >= 0 {
				return low + i
			}
			v, err := strconv.Atoi(s)
			if err != nil {
				panic(fmt.Sprintf("the oracle cannot read %q", text))
			}
			return v
		}
		for _, term := range strings.Split(word, ",") {
			base, stepText, stepped := strings.Cut(term, "/")
			step := 1
			if stepped {
				step = number(stepText)
			}
			a, b := low, high
			if base == "*" || base == "?" {
				star = star || step == 1
			} else if first, last, isRange := strings.Cut(base, "-"); isRange {
				a, b = number(first), number(last)
			} else if a = number(base); !stepped {
				b = a
			}
			for v := a; v <= b; v += step {
				set[v] = true
			}
		}
		return star
	}
	mark(&n.second, words[0], 0, 59)
	mark(&n.minute, words[1], 0, 59)
	mark(&n.hour, words[2], 0, 23)
	anyDay := mark(&n.dom, words[3], 1, 31)
	mark(&n.month, words[4], 1, 12, "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
	anyWeekday := mark(&n.dow, words[5], 0, 6, "SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
	n.either = !anyDay && !anyWeekday
	return n
}

// matches reports whether a clock that shows w matches; w is the Unix time at which a clock in UTC shows the same.
func (n *naive) matches(w int64) bool {
	s := (w%86400 + 86400) % 86400
	return n.second[s%60] && n.minute[s/60%60] && n.hour[s/3600] && n.onDay((w-s)/86400)
}

func (n *naive) onDay(day int64) bool {
	if day != n.day {
		at := time.Unix(day*86400, 0).UTC()
		dom, dow := n.dom[at.Day()], n.dow[at.Weekday()]
		n.day, n.dayIs = day, n.month[at.Month()] && (dom && dow || n.either && (dom || dow))
	}
	return n.dayIs
}

// write invents an expression. The small hours, in which clocks are changed, come often.
func write(r *rand.Rand) string {
	var months = []string{"JAN", "feb", "Mar", "APR", "OCT", "NOV", "DEC"}
	var days = []string{"SUN", "mon", "TUE", "THU", "SAT"}
	number := func(low, high int) int { return low + r.IntN(high-low+1) }
	term := func(low, high int) string {
		a := number(low, high)
		b := number(a, high)
		switch r.IntN(14) {
		case 0:
			return fmt.Sprintf("%d-%d", a, b)
		case 1:
			return fmt.Sprintf("%d-%d/%d", a, b, number(1, 9))
		case 2:
			return fmt.Sprintf("%d/%d", a, number(1, 20))
		case 3:
			return fmt.Sprintf("*/%d", number(1, 9))
		case 4:
			return []string{"H", fmt.Sprintf("H/%d", number(2, 6)), fmt.Sprintf("H(%d-%d)", a, b), fmt.Sprintf("H(%d-%d)/%d", low, high, number(2, 5))}[r.IntN(4)]
		}
		return strconv.Itoa(a)
	}
	field := func(star float64, low, high int, names []string) string {
		if r.Float64() < star {
			return []string{"*", "*", "*", "?"}[r.IntN(4)]
		}
		if names != nil && r.IntN(3) == 0 {
			return names[r.IntN(len(names))]
		}
		terms := []string{term(low, high)}
		for r.IntN(4) == 0 {
			terms = append(terms, term(low, high))
		}
		return strings.Join(terms, ",")
	}
	hour := field(0.3, 0, 23, nil)
	if r.IntN(3) == 0 {
		hour = field(0, 0, 4, nil)
	}
	words := []string{field(0.15, 0, 59, nil), hour, field(0.6, 1, 31, nil), field(0.7, 1, 12, months), field(0.6, 0, 6, days)}
	if r.IntN(3) == 0 {
		words = append([]string{field(0.1, 0, 59, nil)}, words...)
	}
	return strings.Join(words, " ")
}
