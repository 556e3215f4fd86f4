package partition

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobstream/jobstream/internal/finding"
)

// An inspection takes the members as they are when it ends: the one that leaves meanwhile has handed over.
func TestInspect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t)
		f.join("a", 1)
		leave := f.join("b", 1)
		f.shares(3*HeartbeatInterval, "a:16 b:16")
		time.AfterFunc(2*HeartbeatInterval, leave)
		began := time.Now()
		got := lines(Inspect(t.Context(), antenna{&f.air, "doctor"}, []string{"job"}))
		if want := []string{"reconcilers OK 1 live: a", "partitions of job OK all are served: a (version 1) 32"}; !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		if took := time.Since(began); took != listensFor {
			t.Errorf("it took %v", took)
		}
	})
}

// lines formats findings without their advice.
func lines(all []finding.Finding) (out []string) {
	for _, f := range all {
		out = append(out, fmt.Sprintf("%s %s %s", f.Check, f.Level, f.Found))
	}
	return out
}

func TestMembersFound(t *testing.T) {
	t.Parallel()
	member := func(name string, holds Set) Heartbeat {
		return Heartbeat{Member: name, Versions: map[string]int{"job": 4}, Holds: map[string]Set{"job": holds}, Serves: true}
	}
	unfit := member("b", 0)
	unfit.Unfit = true
	for _, c := range []struct {
		name string
		live []Heartbeat
		want []string
	}{
		{"none", nil, []string{"reconcilers WARN none has sent a heartbeat"}},
		{"one", []Heartbeat{member("a", All)}, []string{"reconcilers OK 1 live: a", "partitions of job OK all are served: a (version 4) 32"}},
		{"one that has not all", []Heartbeat{member("a", One(3))}, []string{"reconcilers OK 1 live: a", "partitions of job WARN 1 of 32 are served: a (version 4) 1"}},
		{"two, one of them cut off", []Heartbeat{member("a", All), unfit}, []string{"reconcilers OK 2 live: a, b",
			"reconcilers FAIL cannot reach the API server: b", "partitions of job OK all are served: a (version 4) 32, b (version 4) 0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := lines(membersFound(c.live, []string{"job"})); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}
