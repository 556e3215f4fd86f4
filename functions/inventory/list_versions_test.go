package inventory

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	_ "github.com/jobstream/jobstream/internal/dev/replay"
)

// TestListVersionRemembersTheNewestListOfEachUID, as if each UID had a version of its own, and with no more ranges than needed.
func TestListVersionRemembersTheNewestListOfEachUID(t *testing.T) {
	uid := rapid.Map(rapid.IntRange(0, 20), func(i int) types.UID { return types.UID('a' + rune(i)) })
	bound := rapid.OneOf(rapid.Just(types.UID("")), uid)
	rapid.Check(t, func(t *rapid.T) {
		var h ListVersions
		model := map[types.UID]uint64{}
		for range rapid.IntRange(0, 12).Draw(t, "lists") {
			from, to, version := bound.Draw(t, "from"), bound.Draw(t, "to"), rapid.Uint64Range(1, 9).Draw(t, "version")
			h = h.Fold(from, to, version)
			for c := 'a'; c <= 'u'; c++ {
				if u := types.UID(c); u >= from && (to == "" || u < to) {
					model[u] = max(model[u], version)
				}
			}
			for u, want := range model {
				if got := h.Of(u); got != want {
					t.Fatalf("of %s: %d, want %d; %v", u, got, want, h)
				}
			}
			for i := 1; i < len(h); i++ {
				if h[i].From <= h[i-1].From || h[i].Version == h[i-1].Version {
					t.Fatalf("ranges %v", h)
				}
			}
		}
		if h = h.Fold("", "", 10); len(h) != 1 || h.Of("m") != 10 {
			t.Fatalf("after a whole list: %v", h)
		}
	})
}

// TestListVersionsAreBounded: of parts of very many lists, only the version that all of them reach is kept.
func TestListVersionsAreBounded(t *testing.T) {
	h := ListVersions{{Version: 3}}
	for i := range 10 * reachesMax {
		h = h.Fold(types.UID(rune('0'+2*i)), types.UID(rune('0'+2*i+1)), uint64(10+i))
	}
	if len(h) > reachesMax || h.Of("") != 3 {
		t.Errorf("%d ranges, from %d on", len(h), h.Of(""))
	}
}

// TestTheNewestListIsNoEndOfOnePod: what is known of a single Pod is no list, however new it is.
func TestTheNewestListIsNoEndOfOnePod(t *testing.T) {
	for _, c := range []struct {
		name string
		h    ListVersions
		want uint64
	}{
		{"none", nil, 0},
		{"a whole list", ListVersions(nil).Fold("", "", 7), 7},
		{"and a Pod that went later", ListVersions(nil).Fold("", "", 7).FoldGone("b", 9), 7},
		{"the first of two parts of a newer list", ListVersions(nil).Fold("", "", 7).Fold("", "m", 8), 8},
		{"the last of two parts of a newer list", ListVersions(nil).Fold("", "", 7).Fold("m", "", 8), 8},
		{"a part between, and a Pod of it that went later", ListVersions(nil).Fold("", "", 7).Fold("f", "m", 8).FoldGone("g", 9), 8},
	} {
		if got := c.h.Newest(); got != c.want {
			t.Errorf("%s: %d, want %d of %v", c.name, got, c.want, c.h)
		}
	}
}

// TestAsManyRangesAsAllowedAreKept: only one more makes the State forget.
func TestAsManyRangesAsAllowedAreKept(t *testing.T) {
	h := ListVersions{{Version: 3}}
	for i := 1; i < reachesMax; i++ {
		h = h.Fold(types.UID(rune('0'+i)), "", uint64(3+i))
	}
	last := types.UID(rune('0' + reachesMax))
	if len(h) != reachesMax || h.Of(last) != reachesMax+2 {
		t.Errorf("%d ranges, the last from %d on", len(h), h.Of(last))
	}
	if h = h.Fold(last, "", 999); len(h) != 1 || h.Of(last) != 3 {
		t.Errorf("with one more: %d ranges, the last from %d on", len(h), h.Of(last))
	}
}
