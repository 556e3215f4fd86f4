package chaos

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// line is what one Pod has written as its last action.
type line struct {
	job   string
	index string // "-" without one
	uid   types.UID
	node  string
	code  int
}

// script is what a Pod does: it works for so many seconds, chooses an exit code by the rule (shell that may set $code), writes
// one line into the ledger, and exits.
func script(ledger, seconds, rule string) string {
	return fmt.Sprintf("sleep %s\ncode=0\n%s\n", seconds, rule) +
		`echo "$JOB ${JOB_COMPLETION_INDEX:--} $POD_UID $NODE $code" >> '` + ledger + "'\nexit $code"
}

// knows gives a Pod's container what it writes besides its UID.
func knows(c *corev1.Container) {
	for name, path := range map[string]string{
		"JOB": "metadata.labels['" + batchv1.JobNameLabel + "']", "NODE": "spec.nodeName",
	} {
		c.Env = append(c.Env, corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}})
	}
}

// readLedger reads all lines.
func readLedger(path string) (lines []line, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseLedger(string(text))
}

func parseLedger(text string) (lines []line, err error) {
	for l := range strings.Lines(text) {
		w := strings.Fields(l)
		if len(w) != 5 {
			return nil, fmt.Errorf("the ledger has a line %q", l)
		}
		code, err := strconv.Atoi(w[4])
		if err != nil {
			return nil, fmt.Errorf("the ledger has a line %q: %w", l, err)
		}
		lines = append(lines, line{job: w[0], index: w[1], uid: types.UID(w[2]), node: w[3], code: code})
	}
	return lines, nil
}
