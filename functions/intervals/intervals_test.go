package intervals_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/functions/intervals"
)

func ExampleSet_String() {
	fmt.Println(intervals.Of(7, 3, 2, 0, 1, 9, 10))
	// Output: 0-3,7,9,10
}

// TestASetIsWhatAMapOfBoolsIs: every operation agrees with a naive implementation.
func TestASetIsWhatAMapOfBoolsIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var set intervals.Set
		naive := map[int]bool{}
		for _, n := range rapid.SliceOf(rapid.IntRange(0, 40)).Draw(t, "numbers") {
			if rapid.IntRange(0, 3).Draw(t, "op") == 0 {
				set = set.Without(n)
				delete(naive, n)
			} else {
				set = set.With(n)
				naive[n] = true
			}
		}
		other := intervals.Of(rapid.SliceOf(rapid.IntRange(0, 40)).Draw(t, "other")...)
		limit := rapid.IntRange(0, 41).Draw(t, "limit")
		union, below := set.Union(other), set.Below(limit)
		for n := range 41 {
			if set.Has(n) != naive[n] || union.Has(n) != (naive[n] || other.Has(n)) || below.Has(n) != (naive[n] && n < limit) {
				t.Fatalf("%d: set %v, union %v, below %d %v", n, set, union, limit, below)
			}
		}
		if set.Len() != len(naive) {
			t.Fatalf("%v has %d elements, want %d", set, set.Len(), len(naive))
		}
		back, err := intervals.Parse(set.String())
		if err != nil || back.String() != set.String() || back.Len() != set.Len() {
			t.Fatalf("%v comes back as %v, %v", set, back, err)
		}
	})
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"a", "1-", "-1", "3-2", "2,1", "1,1", "1-3,3", "1,,2", ","} {
		if got, err := intervals.Parse(text); err == nil {
			t.Errorf("%q parses as %v", text, got)
		}
	}
}
