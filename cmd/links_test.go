package cmd_test

import (
	"os/exec"
	"strings"
	"testing"
)

// A program in production connects to a NATS server and never is one. To import bus/embedded anywhere below links all of
// nats-server: a larger image, and one more program whose security advisories concern us.
func TestWhoLinksTheNATSServer(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]bool{"trigger": false, "reconciler": false, "jobstream": true} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./"+program).Output()
			if err != nil {
				t.Fatal(err)
			}
			var linked []string
			for p := range strings.Lines(string(out)) {
				if strings.HasPrefix(p, "github.com/nats-io/nats-server/") {
					linked = append(linked, strings.TrimSpace(p))
				}
			}
			if got := len(linked) > 0; got != want {
				t.Errorf("links nats-server: %v, want %v: %q\n\"go list -deps -json ./cmd/%s\" shows the importers; keep bus/embedded to cmd/jobstream, development and tests",
					got, want, linked, program)
			}
		})
	}
}
