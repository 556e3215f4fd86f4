package parity

import (
	"strings"
	"testing"
)

func TestDiffShowsWhatOnlyOneTextHas(t *testing.T) {
	for _, tt := range []struct{ old, now, want string }{
		{"a b c", "a b c", ""},
		{"a b c", "a x c", "  a,- b,+ x,  c"},
		{"a b c d e f g h", "a b c d x e f g h", "  ...,  c,  d,+ x,  e,  f"},
		{"a b c d e f g h", "b c d e f g h i", "- a,  b,  c,  ...,  g,  h,+ i"},
	} {
		got := strings.ReplaceAll(diff(strings.Fields(tt.old), strings.Fields(tt.now)), "\n", ",")
		if got != tt.want {
			t.Errorf("%s -> %s: %s, want %s", tt.old, tt.now, got, tt.want)
		}
	}
}
