package act

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/internal/cluster"
	_ "github.com/jobstream/jobstream/internal/dev/replay"
)

// TestShelves: each word places an object with a weight, "a1=5" in namespace a, uses it, "a1", or removes it, "-a1"; "..." are ten
// minutes without any use.
func TestShelves(t *testing.T) {
	for name, c := range map[string]struct{ does, keeps string }{
		"what fits stays":                                 {"a1=5 b1=5", "a1 b1"},
		"what was used longest ago goes":                  {"a1=4 a2=4 a3=4", "a2 a3"},
		"to be asked for is a use":                        {"a1=4 a2=4 a1 a3=4", "a1 a3"},
		"the heaviest namespace loses":                    {"b1=1 a1=4 a2=4 b2=2", "a2 b1 b2"},
		"also if another is filled":                       {"a1=4 a2=4 b1=1 b2=1 b3=1", "a2 b1 b2 b3"},
		"one large object makes room in its own":          {"b1=2 b2=1 a1=3 a2=3 a3=7", "a3 b1 b2"},
		"what weighs more than the limit never stays":     {"a1=1 a2=11", ""},
		"what is placed again has the new weight only":    {"a1=9 a1=2 a2=8", "a1 a2"},
		"what has become heavier makes others go":         {"a1=2 a2=2 a1=9", "a1"},
		"the heaviest namespace loses, as drawn":          {"a1=2 a2=2 a3=2 b1=2 b2=1 b3=2", "a2 a3 b1 b2 b3"},
		"what is idle goes first":                         {"b1=1 ... a1=4 a2=5 a3=1", "a1 a2 a3"},
		"what has been used again is not idle":            {"b1=1 b2=1 ... b1 a1=4 a2=4 a3=2", "a2 a3 b1"},
		"what is idle stays where there is room":          {"b1=1 ... a1=4 ... a1", "a1 b1"},
		"what is removed weighs nothing":                  {"a1=9 -a1 b1=9", "b1"},
		"what is not there can be removed, and asked for": {"-a1 a1 b1=10 -b2", "b1"},
	} {
		t.Run(name, func(t *testing.T) {
			s, now := newShelves[string](10), time.Unix(0, 0)
			for _, word := range strings.Fields(c.does) {
				what, number, place := strings.Cut(word, "=")
				weight, _ := strconv.Atoi(number)
				switch gone, remove := strings.CutPrefix(word, "-"); {
				case word == "...":
					now = now.Add(idleTime)
				case remove:
					s.remove(identityOf(gone))
				case place:
					s.put(identityOf(what), &what, weight, now)
				default:
					s.get(identityOf(word), now)
				}
			}
			if got := strings.Join(kept(s), " "); got != c.keeps {
				t.Errorf("keeps %q, want %q", got, c.keeps)
			}
		})
	}
}

// TestShelvesWeighWhatTheyKeep, whatever is placed, used and removed.
func TestShelvesWeighWhatTheyKeep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(0, 50).Draw(t, "limit")
		s, weights := newShelves[string](limit), map[string]int{}
		now := time.Unix(0, 0)
		for range rapid.IntRange(0, 100).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "seconds")) * time.Second)
			name := rapid.StringMatching("[a-d][1-5]").Draw(t, "name")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				s.remove(identityOf(name))
			case 1:
				s.get(identityOf(name), now)
			default:
				weights[name] = rapid.IntRange(1, 20).Draw(t, "weight")
				s.put(identityOf(name), &name, weights[name], now)
			}
			sum := 0
			for _, name := range kept(s) {
				sum += weights[name]
			}
			if s.weight != sum || sum > limit {
				t.Fatalf("weighs %d, keeps %v of %d, limit %d", s.weight, kept(s), sum, limit)
			}
		}
	})
}

func identityOf(name string) cluster.Identity {
	return cluster.Identity{Namespace: name[:1], UID: types.UID(name[1:])}
}

func kept(s shelves[string]) (names []string) {
	for of, p := range s.placed {
		if names = append(names, *p.entry); of != identityOf(*p.entry) {
			return []string{*p.entry, "is at the place of", string(of.UID)}
		}
	}
	slices.Sort(names)
	return names
}
