package sim

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/intervals"
	"github.com/jobstream/jobstream/functions/job"
)

// plan is what a seed draws for one Job, its Pods and its users.
type plan struct {
	job         events.Job
	features    map[feature]bool
	failPercent int
	// stuckPercent of the Pods cannot pull their image.
	stuckPercent int
	// fates are the podFailurePolicy's actions by exit code, and evicted its action for an eviction; "" if no rule matches.
	fates   map[int32]batchv1.PodFailurePolicyAction
	evicted batchv1.PodFailurePolicyAction
	// slow Pods run for a while, so that users have time to act on them.
	slow bool
	// heirlooms is the number of Pods without a serial, from an older version, that the Job begins with.
	heirlooms int
}

// feature is a part of the Job API that a world exercises.
type feature string

// The features. JOBSTREAM_SIM_FEATURES names those that may be drawn, separated by commas; "old" allows none of them.
const (
	suspending feature = "suspend"    // users suspend and resume
	deadline   feature = "deadline"   // activeDeadlineSeconds
	policed    feature = "policy"     // podFailurePolicy
	perIndex   feature = "perindex"   // backoffLimitPerIndex, maxFailedIndexes
	success    feature = "success"    // successPolicy
	elastic    feature = "elastic"    // completions change with parallelism
	adopting   feature = "adopt"      // orphans, Pods that users create, labels that change
	unstamped  feature = "unstamped"  // Pods without a serial
	expiring   feature = "ttl"        // ttlSecondsAfterFinished
	waiting    feature = "backoff"    // backoff-seconds
	keeping    feature = "keep"       // failed-pods-limit
	pending    feature = "pending"    // pending-deadline-seconds
	parameters feature = "parameters" // per-completion-env
	declaring  feature = "declare"    // another controller writes conditions
	deleting   feature = "delete"     // the Job is deleted in the foreground, with orphans, or recreated
	limited    feature = "limits"     // small limits of the process
	lingering  feature = "linger"     // Pods have a finalizer of the user's own
)

// allowed reads the environment variable that restricts features, to watch one alone.
var allowed = func() func(feature) bool {
	text := os.Getenv("JOBSTREAM_SIM_FEATURES")
	names := strings.Split(text, ",")
	return func(f feature) bool { return text == "" || slices.Contains(names, string(f)) }
}()

// meddlers returns how many users there are: one more than features.
func (p plan) meddlers() int { return 1 + len(p.features) }

// parametersNames are the ConfigMaps of per-completion values. A Job begins with the first.
var parametersNames = []string{"values", "other-values"}

// choose draws the Job of a world: a plain Job in every other one, so that older behaviour is exercised as often as before
// features were added; otherwise one with any features that the API server accepts together.
func choose(r *rand.Rand) plan {
	j := events.Job{Name: "pi", Parallelism: int32(1 + r.IntN(5)), BackoffLimit: int32(r.IntN(12)),
		Indexed: r.IntN(2) == 0, RestartsInPlace: r.IntN(5) == 0, ReplaceFailedOnly: r.IntN(4) == 0}
	if n := int32(r.IntN(9)); j.Indexed || n > 1 {
		j.Completions = &n
	}
	p := plan{job: j, failPercent: []int{0, 5, 25, 60, 100}[r.IntN(5)]}
	if r.IntN(2) == 0 {
		return p
	}
	d := draw{rand: r, plan: &p}
	p.features, p.slow = map[feature]bool{}, r.IntN(2) == 0
	d.spec()
	d.policy()
	d.indexes()
	d.options()
	return p
}

// chooseRun draws a Job that a ScheduledJob creates: small and plain, so that there are several.
func chooseRun(r *rand.Rand) plan {
	n := int32(1 + r.IntN(2))
	j := events.Job{Name: "run", Parallelism: n, Completions: &n, BackoffLimit: int32(r.IntN(2)), Indexed: r.IntN(2) == 0}
	return plan{job: j, failPercent: []int{0, 25, 60}[r.IntN(3)]}
}

// draw adds features to a plan.
type draw struct {
	rand *rand.Rand
	plan *plan
}

// chance draws a feature, and records it.
func (d draw) chance(percent int, f feature) bool {
	if d.rand.IntN(100) >= percent || !allowed(f) {
		return false
	}
	d.plan.features[f] = true
	return true
}

func (d draw) spec() {
	r, j := d.rand, &d.plan.job
	if d.chance(30, suspending) {
		j.Suspended = r.IntN(3) == 0
	}
	if d.chance(20, deadline) {
		j.ActiveDeadlineSeconds = new(int64(r.IntN(200)))
	}
	if d.chance(20, expiring) {
		j.TTLSecondsAfterFinished = new(int32(r.IntN(60)))
	}
	if d.chance(30, adopting) && r.IntN(3) > 0 {
		j.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "pi"}}
	}
	if d.chance(10, unstamped) && !j.Suspended {
		d.plan.heirlooms = 1 + r.IntN(2)
	}
	d.chance(25, declaring)
	d.chance(40, deleting)
	d.chance(40, limited)
	d.chance(15, lingering)
	if d.chance(14, pending) {
		d.plan.stuckPercent = 10 + r.IntN(60)
	}
}

// policy draws a podFailurePolicy. Each rule is about one exit code or about evictions, so that the truth is a table. The API
// server demands restartPolicy Never for it, and replaces only failed Pods.
func (d draw) policy() {
	r, j := d.rand, &d.plan.job
	perIndexed := j.Indexed && d.chance(50, perIndex)
	if perIndexed {
		j.BackoffLimitPerIndex = new(int32(r.IntN(4)))
		if r.IntN(2) == 0 {
			j.BackoffLimit = math.MaxInt32
		}
		if r.IntN(3) > 0 {
			j.MaxFailedIndexes = new(int32(r.IntN(min(3, int(*j.Completions)+1))))
		}
	}
	if j.RestartsInPlace || !d.chance(50, policed) {
		return
	}
	actions := []batchv1.PodFailurePolicyAction{batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionIgnore,
		batchv1.PodFailurePolicyActionCount, batchv1.PodFailurePolicyActionFailJob}
	if perIndexed {
		actions = append(actions, slices.Repeat([]batchv1.PodFailurePolicyAction{batchv1.PodFailurePolicyActionFailIndex}, 4)...)
	}
	j.ReplaceFailedOnly, j.PodFailurePolicy = true, &batchv1.PodFailurePolicy{}
	rule := func(x batchv1.PodFailurePolicyRule) {
		j.PodFailurePolicy.Rules = append(j.PodFailurePolicy.Rules, x)
	}
	if r.IntN(3) > 0 {
		d.plan.evicted = actions[r.IntN(len(actions))]
		rule(batchv1.PodFailurePolicyRule{Action: d.plan.evicted, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
			{Type: "DisruptionTarget", Status: "True"}}})
	}
	d.plan.fates = map[int32]batchv1.PodFailurePolicyAction{}
	for code := int32(1); code <= codes; code++ {
		if action := actions[r.IntN(len(actions))]; r.IntN(2) == 0 {
			d.plan.fates[code] = action
			rule(batchv1.PodFailurePolicyRule{Action: action, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
				ContainerName: new("main"), Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{code}}})
		}
	}
}

// codes are the exit codes of a main container that fails by itself: 1 to codes.
const codes = 4

func (d draw) indexes() {
	r, j := d.rand, &d.plan.job
	if !j.Indexed {
		return
	}
	n := int(*j.Completions)
	if d.chance(25, elastic) && r.IntN(2) == 0 {
		j.Parallelism = int32(n)
	}
	if !d.chance(25, success) {
		return
	}
	j.SuccessPolicy = &batchv1.SuccessPolicy{}
	for range 1 + r.IntN(2) {
		var rule batchv1.SuccessPolicyRule
		total := n
		if n > 0 && r.IntN(2) == 0 {
			named := intervals.Of(r.IntN(n)).With(r.IntN(n))
			total = named.Len()
			rule.SucceededIndexes = new(named.String())
		}
		if rule.SucceededIndexes == nil || r.IntN(2) == 0 {
			rule.SucceededCount = new(int32(r.IntN(total + 1)))
		}
		j.SuccessPolicy.Rules = append(j.SuccessPolicy.Rules, rule)
	}
}

func (d draw) options() {
	r, j := d.rand, &d.plan.job
	if !j.RestartsInPlace && d.chance(25, waiting) {
		j.Options.BackoffSeconds = new([]int64{1, 3, 30, 600}[r.IntN(4)])
	}
	if !j.RestartsInPlace && d.chance(25, keeping) && r.IntN(4) > 0 {
		j.Options.FailedPodsLimit = new(r.IntN(3))
	}
	if d.plan.features[pending] && r.IntN(3) > 0 {
		j.Options.PendingDeadlineSeconds = new(int64(1 + r.IntN(60)))
	}
	if j.Indexed && d.chance(15, parameters) {
		j.Options.Parameters = parametersNames[0]
	}
}

// chooseLimits draws the values of the processes' flags.
func chooseLimits(r *rand.Rand, small bool) job.Limits {
	l := job.DefaultLimits()
	l.DeleteExpired = r.IntN(2) == 0
	if small {
		l.MaxUncounted, l.MaxPodChanges = 1+r.IntN(3), 1+r.IntN(3)
	}
	return l
}

func describe(p plan) string {
	j := p.job
	completions := "until one succeeds"
	if j.Completions != nil {
		completions = fmt.Sprintf("completions %d", *j.Completions)
	}
	out := fmt.Sprintf("%s, parallelism %d, backoffLimit %d, indexed %v, restarts in place %v, replaces failed only %v; %d %% of its Pods fail",
		completions, j.Parallelism, j.BackoffLimit, j.Indexed, j.RestartsInPlace, j.ReplaceFailedOnly, p.failPercent)
	if len(p.features) == 0 {
		return out
	}
	out += fmt.Sprintf("\n  features %v, slow %v, suspended %v, %d Pods of an older version, %d %% stuck, exit codes %v, evictions %q", slices.Sorted(maps.Keys(p.features)),
		p.slow, j.Suspended, p.heirlooms, p.stuckPercent, p.fates, p.evicted)
	say := func(name string, value any, set bool) {
		if set {
			out += fmt.Sprintf(", %s %v", name, value)
		}
	}
	say("activeDeadlineSeconds", or(j.ActiveDeadlineSeconds), j.ActiveDeadlineSeconds != nil)
	say("ttlSecondsAfterFinished", or(j.TTLSecondsAfterFinished), j.TTLSecondsAfterFinished != nil)
	say("backoffLimitPerIndex", or(j.BackoffLimitPerIndex), j.BackoffLimitPerIndex != nil)
	say("maxFailedIndexes", or(j.MaxFailedIndexes), j.MaxFailedIndexes != nil)
	say("successPolicy", j.SuccessPolicy, j.SuccessPolicy != nil)
	say("selector", j.Selector, j.Selector != nil)
	say("backoff-seconds", or(j.Options.BackoffSeconds), j.Options.BackoffSeconds != nil)
	say("failed-pods-limit", or(j.Options.FailedPodsLimit), j.Options.FailedPodsLimit != nil)
	say("pending-deadline-seconds", or(j.Options.PendingDeadlineSeconds), j.Options.PendingDeadlineSeconds != nil)
	say("parameters", j.Options.Parameters, j.Options.Parameters != "")
	return out
}

func or[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
