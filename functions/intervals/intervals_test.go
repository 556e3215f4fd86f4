package intervals_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/functions/intervals"
	_ "github.com/jobstream/jobstream/internal/dev/replay"
)

func ExampleSet_String() {
	fmt.Println(intervals.Of(7, 3, 2, 0, 1, 9, 10))
	// Output: 0-3,7,9,10
}

// TestASetIsWhatAMapOfBoolsIs: every operation agrees with a naive implementation.
func TestASetIsWhatAMapOfBoolsIs(t *testing.T) {
	const most = 12 // so few that many touch
	rapid.Check(t, func(t *rapid.T) {
		var set intervals.Set
		naive := map[int]bool{}
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, most), 0, 3*most).Draw(t, "numbers") {
			if rapid.IntRange(0, 3).Draw(t, "op") == 0 {
				set = set.Without(n)
				delete(naive, n)
			} else {
				set = set.With(n)
				naive[n] = true
			}
		}
		more := rapid.SliceOfN(rapid.IntRange(0, most), 0, 2*most).Draw(t, "other")
		other, limit := intervals.Of(more...), rapid.IntRange(0, most+1).Draw(t, "limit")
		for _, c := range []struct {
			name string
			got  intervals.Set
			has  func(n int) bool
		}{
			{"the set", set, func(n int) bool { return naive[n] }},
			{"the other", other, func(n int) bool { return slices.Contains(more, n) }},
			{"the union", set.Union(other), func(n int) bool { return naive[n] || slices.Contains(more, n) }},
			{"the intersection", set.Intersect(other), func(n int) bool { return naive[n] && slices.Contains(more, n) }},
			{"below the limit", set.Below(limit), func(n int) bool { return naive[n] && n < limit }},
		} {
			var want []int
			for n := range most + 2 {
				if c.has(n) {
					want = append(want, n)
				}
				if c.got.Has(n) != c.has(n) {
					t.Fatalf("%s: %v, limit %d: it has %d: %v", c.name, c.got, limit, n, c.got.Has(n))
				}
			}
			if c.got.Len() != len(want) {
				t.Fatalf("%s: %v has %d elements, want %d", c.name, c.got, c.got.Len(), len(want))
			}
			back, err := intervals.Parse(c.got.String())
			if err != nil || !slices.Equal(back, c.got) {
				t.Fatalf("%s: %v comes back as %v, %v", c.name, c.got, back, err)
			}
			ordered(t, c.name, c.got)
		}
	})
}

// ordered checks that spans are in order, and neither overlap nor touch: equal sets have equal spans, so equal states are equal in
// bytes.
func ordered(t *rapid.T, name string, s intervals.Set) {
	t.Helper()
	for i, v := range s {
		if v.First > v.Last || i > 0 && s[i-1].Last+1 >= v.First {
			t.Fatalf("%s has the spans %v", name, []intervals.Span(s))
		}
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "0": "0", "7": "7", "3-5": "3-5",
		"0,1": "0,1", "0,1,2": "0-2", "0-3,4": "0-4", "0-3,4-9": "0-9", "0-1": "0,1", // neighbours are one span, however they are written
		"0-3,5": "0-3,5", "0,2147483647": "0,2147483647",
	} {
		got, err := intervals.Parse(text)
		if err != nil || got.String() != want {
			t.Errorf("%q parses as %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"a", "1-", "-1", "3-2", "2,1", "1,1", "1-3,3", "1,,2", ",", "0-2147483648"} {
		if got, err := intervals.Parse(text); err == nil {
			t.Errorf("%q parses as %v", text, got)
		}
	}
}
