package processnode

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// epoch is when the tests' Pods live; seconds count from there.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return epoch.Add(time.Duration(seconds * float64(time.Second))) }

// sketch draws containers from words such as "init:ok side:run main:wait@5 main:fail+again@30". The role comes first, the
// state after the colon, what it was told after a slash, and when it is due, or when it ended, after the @.
func sketch(t *testing.T, s string) []container {
	t.Helper()
	var cs []container
	for i, word := range strings.Fields(s) {
		kind, state, _ := strings.Cut(word, ":")
		state, when, timed := strings.Cut(state, "@")
		moment := epoch
		if timed {
			var seconds float64
			if _, err := fmt.Sscan(when, &seconds); err != nil {
				t.Fatalf("%s: %v", word, err)
			}
			moment = at(seconds)
		}
		state, told, _ := strings.Cut(state, "/")
		c := container{
			name: fmt.Sprintf("%s%d", kind, i), spec: &v1.Container{Image: "image"}, due: moment,
			role:      map[string]role{"init": initRole, "side": sidecarRole, "main": mainRole}[kind],
			signalled: map[string]signalled{"": notSignalled, "term": termed, "kill": killed}[told],
		}
		state, c.again = strings.CutSuffix(state, "+again")
		switch state {
		case "wait":
		case "run":
			c.stage, c.started, c.runs = running, moment, 1
		case "ok", "fail":
			c.stage, c.runs = exited, 1
			c.exit = &exit{finished: moment, started: moment, reason: "Completed"}
			if state == "fail" {
				c.exit.code, c.exit.reason = 1, "Error"
			}
		default:
			t.Fatalf("no such state: %s", word)
		}
		cs = append(cs, c)
	}
	return cs
}

func (s steps) String() string {
	out := ""
	for _, part := range []struct {
		verb string
		who  []int
	}{{"start", s.start}, {"term", s.term}, {"kill", s.kill}} {
		if len(part.who) > 0 {
			out += fmt.Sprint(part.verb, part.who, " ")
		}
	}
	if s.done {
		out += "done "
	}
	if !s.wake.IsZero() {
		out += fmt.Sprintf("wake@%g", s.wake.Sub(epoch).Seconds())
	}
	return strings.TrimSpace(out)
}

func TestDecide(t *testing.T) {
	const grace = 30 * time.Second
	deleted := stopOrder{at: at(10), grace: 5 * time.Second}
	for _, test := range []struct {
		containers string
		stop       stopOrder
		now        float64
		want       string
	}{
		// The way up.
		{"main:wait main:wait", stopOrder{}, 0, "start[0 1]"},
		{"main:run main:wait", stopOrder{}, 0, "start[1]"},
		{"main:run main:ok", stopOrder{}, 0, ""},
		{"init:wait init:wait main:wait", stopOrder{}, 0, "start[0]"},
		{"init:run init:wait main:wait", stopOrder{}, 0, ""},
		{"init:ok init:wait main:wait", stopOrder{}, 0, "start[1]"},
		{"init:ok init:ok main:wait", stopOrder{}, 0, "start[2]"},
		{"init:wait@4 main:wait", stopOrder{}, 0, "wake@4"},
		{"side:wait init:wait main:wait", stopOrder{}, 0, "start[0]"},
		{"side:run init:wait main:wait", stopOrder{}, 0, "start[1]"},
		{"side:run init:ok main:wait", stopOrder{}, 0, "start[2]"},
		// What ended and is to run again.
		{"main:fail+again@10", stopOrder{}, 9, "wake@10"},
		{"main:fail+again@10 main:ok+again@8 main:run", stopOrder{}, 9, "start[1] wake@10"},
		{"main:fail+again@10", stopOrder{}, 10, "start[0]"},
		{"init:fail+again@10 main:wait", stopOrder{}, 10, "start[0]"},
		{"side:fail+again@10 init:run main:wait", stopOrder{}, 11, "start[0]"},
		{"side:fail+again@10 init:ok main:run", stopOrder{}, 9, "wake@10"},
		{"side:fail+again@10 init:ok main:wait", stopOrder{}, 9, "start[2] wake@10"},
		// The end of the work.
		{"main:ok main:fail", stopOrder{}, 0, "done"},
		{"init:fail main:wait", stopOrder{}, 0, "done"},
		{"side:run side:run main:ok@7", stopOrder{}, 8, "term[1] wake@37"},
		{"side:run side:run/term main:ok@7", stopOrder{}, 9, "wake@37"},
		{"side:run side:ok main:ok@7", stopOrder{}, 9, "term[0] wake@37"},
		{"side:run side:ok+again main:ok@7", stopOrder{}, 9, "term[0] wake@37"},
		{"side:run/term side:run/term main:ok@7", stopOrder{}, 37, "kill[1 0]"},
		{"side:run side:run/kill main:ok@7", stopOrder{}, 38, "kill[0]"},
		{"side:run init:fail@7 main:wait", stopOrder{}, 8, "term[0] wake@37"},
		{"side:ok+again main:ok", stopOrder{}, 0, "done"},
		// Ended by the node.
		{"main:wait", deleted, 10, "done"},
		{"main:fail+again@12", deleted, 13, "done"},
		{"main:run main:run/term main:ok", deleted, 11, "term[0] wake@15"},
		{"main:run/term", deleted, 15, "kill[0]"},
		{"main:run/kill", deleted, 16, ""},
		{"side:run init:run main:wait", deleted, 11, "term[1] wake@15"},
		{"side:run main:run/term", deleted, 11, "wake@15"},
		{"side:run main:fail", deleted, 11, "term[0] wake@15"},
		{"main:run", stopOrder{at: at(10)}, 10, "kill[0]"},
	} {
		if got := decide(sketch(t, test.containers), test.stop, grace, at(test.now)).String(); got != test.want {
			t.Errorf("%s, stopped at %v: at %g s: %q and not %q", test.containers, test.stop, test.now, got, test.want)
		}
	}
}

func TestRestarts(t *testing.T) {
	on := func(op v1.ContainerRestartRuleOnExitCodesOperator, codes ...int32) []v1.ContainerRestartRule {
		return []v1.ContainerRestartRule{{
			Action: v1.ContainerRestartRuleActionRestart, ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: op, Values: codes},
		}}
	}
	own := func(p v1.ContainerRestartPolicy, rules []v1.ContainerRestartRule) v1.Container {
		return v1.Container{RestartPolicy: ptr.To(p), RestartPolicyRules: rules}
	}
	for _, test := range []struct {
		container v1.Container
		pod       v1.RestartPolicy
		again     string // for the codes 0, 1 and 42
	}{
		{v1.Container{}, v1.RestartPolicyNever, "no no no"},
		{v1.Container{}, v1.RestartPolicyOnFailure, "no yes yes"},
		{v1.Container{}, v1.RestartPolicyAlways, "yes yes yes"},
		{own(v1.ContainerRestartPolicyAlways, nil), v1.RestartPolicyNever, "yes yes yes"},
		{own(v1.ContainerRestartPolicyOnFailure, nil), v1.RestartPolicyNever, "no yes yes"},
		{own(v1.ContainerRestartPolicyNever, nil), v1.RestartPolicyAlways, "no no no"},
		{own(v1.ContainerRestartPolicyNever, on(v1.ContainerRestartRuleOnExitCodesOpIn, 42)), v1.RestartPolicyNever, "no no yes"},
		{own(v1.ContainerRestartPolicyNever, on(v1.ContainerRestartRuleOnExitCodesOpNotIn, 0, 42)), v1.RestartPolicyNever, "no yes no"},
	} {
		var got []string
		for _, code := range []int32{0, 1, 42} {
			got = append(got, map[bool]string{true: "yes", false: "no"}[restarts(&test.container, test.pod, code)])
		}
		if strings.Join(got, " ") != test.again {
			t.Errorf("%+v in a Pod with %s: %v and not %s", test.container, test.pod, got, test.again)
		}
	}
}

func TestBackoffDelay(t *testing.T) {
	var got []string
	for n := range 9 {
		got = append(got, Backoff{}.withDefaults().delay(n).String())
	}
	if want := "0s 10s 20s 40s 1m20s 2m40s 5m0s 5m0s 5m0s"; strings.Join(got, " ") != want {
		t.Errorf("delays are %v and not %s", got, want)
	}
}
