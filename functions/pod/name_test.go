package pod

import (
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/events"
	_ "github.com/jobstream/jobstream/internal/dev/replay"
)

// drawName draws a legal Job name: a DNS subdomain, with dots and hyphens where they may stand, up to the length of a
// label value, which the name becomes, and beyond it for Jobs with a manual selector.
func drawName(t *rapid.T) string {
	label := rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?`)
	name := strings.Join(rapid.SliceOfN(label, 1, 12).Draw(t, "labels"), rapid.SampledFrom([]string{".", "-"}).Draw(t, "joint"))
	if len(name) > 253 {
		name = strings.TrimRight(name[:253], "-.")
	}
	if errs := utilvalidation.IsDNS1123Subdomain(name); len(errs) > 0 {
		t.Fatalf("drew the illegal name %q: %v", name, errs)
	}
	return name
}

var nameShape = regexp.MustCompile(`^.+-[bcdfghjklmnpqrstvwxz2456789]{5}$`)

func TestNameIsLegalForEveryJob(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		job := drawName(t)
		serial := rapid.IntRange(0, suffixes-1).Draw(t, "serial")
		index := rapid.SampledFrom([]int{events.NoIndex, 0, 7, 99_999, 1<<31 - 1}).Draw(t, "index")
		name := Name(job, "8f7d9b1c-8a3b-4e56-9c0e-6a4e1de2c1f0", serial, index)
		if errs := validation.NameIsDNSSubdomain(name, false); len(errs) > 0 {
			t.Fatalf("%q is not legal: %v", name, errs)
		}
		if len(name) > 63 || !nameShape.MatchString(name) {
			t.Fatalf("%q (%d characters) has not the shape <job>-<suffix> of at most 63", name, len(name))
		}
		if p, _, _ := strings.Cut(name, "-"); !strings.HasPrefix(job, p) {
			t.Fatalf("%q does not start like its Job %q", name, job)
		}
	})
}

func TestNameIsInjectiveInTheSerial(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		job := drawName(t)
		uid := types.UID(rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}`).Draw(t, "uid"))
		a := rapid.IntRange(0, suffixes-1).Draw(t, "a")
		b := rapid.IntRange(0, suffixes-1).Draw(t, "b")
		i := rapid.IntRange(events.NoIndex, 3).Draw(t, "i")
		k := rapid.IntRange(events.NoIndex, 3).Draw(t, "k")
		if a != b && Name(job, uid, a, i) == Name(job, uid, b, k) {
			t.Fatalf("serials %d and %d share the name %s", a, b, Name(job, uid, a, i))
		}
	})
}

// TestTheNameShowsTheSerial, with or without an index, whatever the Job is called; other names show none.
func TestTheNameShowsTheSerial(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name, serial := drawName(t), rapid.IntRange(0, suffixes-1).Draw(t, "serial")
		index := rapid.SampledFrom([]int{events.NoIndex, 0, 7, 99_999, 1<<31 - 1}).Draw(t, "index")
		if got, ok := SerialIn(Name(name, "uid", serial, index), name, "uid"); !ok || got != serial {
			t.Fatalf("got %d, %v", got, ok)
		}
	})
	own := Name("pi", "uid", 3, events.NoIndex)
	for _, name := range []string{"", "-", "pi", "pi-", "pi-stranger", "pi-aaaaa", "pi-0-aaaaa", own + "-", "-" + own, own + "x", "x" + own,
		"pi-+1" + own[2:], "pi-01" + own[2:], Name("other", "uid", 3, events.NoIndex), Name("pi", "uid", 3, events.NoIndex) + "-0"} {
		if serial, ok := SerialIn(name, "pi", "uid"); ok {
			t.Errorf("%q shows the serial %d", name, serial)
		}
	}
}

// TestSuffixesAreAllDifferent checks the same claim exhaustively, for every serial.
func TestSuffixesAreAllDifferent(t *testing.T) {
	n := suffixes
	if testing.Short() {
		n = 200_000
	}
	seen := make([]uint64, suffixes/64+1)
	for serial := range n {
		at := 0
		for _, c := range []byte(suffix("uid", serial)) {
			at = at*len(events.SuffixDigits) + strings.IndexByte(events.SuffixDigits, c)
		}
		if seen[at/64]&(1<<(at%64)) != 0 {
			t.Fatalf("serial %d has the suffix %q of an earlier one", serial, suffix("uid", serial))
		}
		seen[at/64] |= 1 << (at % 64)
	}
}

func TestName(t *testing.T) {
	long := strings.Repeat("a", 63)
	for _, c := range []struct {
		job           string
		serial, index int
		want          string // without the suffix
	}{
		{"pi", 0, events.NoIndex, "pi-"},
		{"pi", 1, 0, "pi-0-"},
		{"pi.v1", 1, 12, "pi.v1-12-"},
		{long, 3, events.NoIndex, long[:57] + "-"},
		{long, 3, 12345, long[:51] + "-12345-"},
		{strings.Repeat("a", 56) + ".bcdefg", 3, events.NoIndex, strings.Repeat("a", 56) + "-"},
		{strings.Repeat("a", 54) + "-.bcdefg", 3, 1, strings.Repeat("a", 54) + "-1-"},
	} {
		got := Name(c.job, "uid", c.serial, c.index)
		if got[:len(got)-5] != c.want {
			t.Errorf("Name(%q, %d, %d) = %q, want %q and a suffix", c.job, c.serial, c.index, got, c.want)
		}
		if got != Name(c.job, "uid", c.serial, c.index) || got == Name(c.job, "other", c.serial, c.index) {
			t.Errorf("%q is not a function of the UID", got)
		}
	}
}
