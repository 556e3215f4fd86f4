package intervals_test

import (
	"testing"

	"github.com/jobstream/jobstream/functions/intervals"
)

// Another client may have written any text into completedIndexes: it is refused, or is a set that is written in one way and knows
// its members.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "0", "0,1,3-5", "1-1", "3-1", "-1", "0-9223372036854775807", "9223372036854775807", "00,01", "+1", "1,,2", "1-2-3", "5,4"} {
		f.Add(text, 3)
	}
	f.Fuzz(func(t *testing.T, text string, n int) {
		s, err := intervals.Parse(text)
		if err != nil {
			return
		}
		again, err := intervals.Parse(s.String())
		if err != nil || again.String() != s.String() {
			t.Fatalf("%q is %q, which is %q, %v", text, s, again, err)
		}
		if s.Len() < 0 || s.Len() == 0 != (text == "") {
			t.Fatalf("%q has %d members", text, s.Len())
		}
		if n < 0 || n > 1<<40 {
			return
		}
		if with := s.With(n); !with.Has(n) || with.Without(n).Has(n) || s.Has(n) != (s.Union(intervals.Of(n)).String() == s.String()) {
			t.Fatalf("%q and %d: with it %q, without %q", s, n, with, with.Without(n))
		}
		if below := s.Below(n); below.Has(n) || below.Len() > s.Len() {
			t.Fatalf("%q below %d is %q", s, n, below)
		}
	})
}
