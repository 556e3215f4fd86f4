package cmd_test

import (
	"os/exec"
	"strings"
	"testing"
)

// What a program must not link, with the reason. A library that no main package needs is in no image, and its security
// advisories concern no operator. "go list -deps -json" shows who imports what.
func TestLinks(t *testing.T) {
	t.Parallel()
	const (
		natsServer = "github.com/nats-io/nats-server/"              // bus/embedded: production connects to a server
		tools      = "github.com/jobstream/jobstream/internal/dev/" // an API server and a node that are for development
	)
	for program, want := range map[string]struct{ links, never []string }{
		"trigger":           {never: []string{natsServer, tools}},
		"reconciler":        {never: []string{natsServer, tools}},
		"kubectl-jobstream": {never: []string{natsServer, tools}},
		"jobstream":         {links: []string{natsServer}, never: []string{tools}}, // all in one, the NATS server too
		"dev":               {links: []string{natsServer, tools}},
	} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./"+program).Output()
			if err != nil {
				t.Fatal(err)
			}
			linked := func(prefix string) string {
				for p := range strings.Lines(string(out)) {
					if strings.HasPrefix(p, prefix) {
						return strings.TrimSpace(p)
					}
				}
				return ""
			}
			for _, prefix := range want.never {
				if p := linked(prefix); p != "" {
					t.Errorf("it links %s: cut the import that leads there", p)
				}
			}
			for _, prefix := range want.links {
				if linked(prefix) == "" {
					t.Errorf("it links nothing of %s, so the absence elsewhere proves nothing", prefix)
				}
			}
		})
	}
}
