package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// Ledger is a file on the node into which each Pod writes its UID, its index and its exit code as its last action. It is what
// really happened, independent of any controller.
type Ledger struct{ path string }

// NewLedger creates an empty one that is deleted with the test.
func NewLedger(t testing.TB) *Ledger {
	t.Helper()
	l := &Ledger{path: filepath.Join(t.TempDir(), "ledger")}
	if err := os.WriteFile(l.path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return l
}

// Script is what a Pod does: it works for so many seconds, chooses an exit code by the rule (shell that may set $code), writes
// its line, and exits.
func (l *Ledger) Script(seconds, rule string) string {
	return fmt.Sprintf("sleep %s\ncode=0\n%s\n", seconds, rule) +
		`echo "$POD_UID ${JOB_COMPLETION_INDEX:--} $code" >> '` + l.path + "'\nexit $code"
}

// OneInTwenty makes 13 of 256 UIDs fail: five in a hundred. The replacement of a failed Pod has another UID.
const OneInTwenty = `case $POD_UID in *0[0-9a-c]) code=3;; esac`

// Tally is the sum of a ledger.
type Tally struct {
	// Codes are the exit codes by UID.
	Codes map[types.UID]int
	// Succeeded and Failed count the UIDs that exited with 0 and with another code; Indexes counts the distinct indexes of the
	// former.
	Succeeded, Failed, Indexes int
}

// Read sums up the ledger. A UID with two lines is a Pod that ran twice, which fails the test.
func (l *Ledger) Read(t testing.TB) Tally {
	t.Helper()
	text, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	sum, indexes := Tally{Codes: map[types.UID]int{}}, map[string]bool{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) != 3 {
			t.Fatalf("the ledger has a line %q", line)
		}
		code, err := strconv.Atoi(words[2])
		if err != nil {
			t.Fatal(err)
		}
		uid := types.UID(words[0])
		if _, twice := sum.Codes[uid]; twice {
			t.Errorf("Pod %s ran twice", uid)
			continue
		}
		sum.Codes[uid] = code
		if code == 0 {
			sum.Succeeded++
			indexes[words[1]] = true
		} else {
			sum.Failed++
		}
	}
	sum.Indexes = len(indexes)
	return sum
}
