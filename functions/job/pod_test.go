package job

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
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

func TestPodNameIsLegalForEveryJob(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		job := drawName(t)
		serial := rapid.IntRange(0, suffixes-1).Draw(t, "serial")
		index := rapid.SampledFrom([]int{events.NoIndex, 0, 7, 99_999, 1<<31 - 1}).Draw(t, "index")
		name := PodName(job, "8f7d9b1c-8a3b-4e56-9c0e-6a4e1de2c1f0", serial, index)
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

func TestPodNameIsInjectiveInTheSerial(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		job := drawName(t)
		uid := types.UID(rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}`).Draw(t, "uid"))
		a := rapid.IntRange(0, suffixes-1).Draw(t, "a")
		b := rapid.IntRange(0, suffixes-1).Draw(t, "b")
		i := rapid.IntRange(events.NoIndex, 3).Draw(t, "i")
		k := rapid.IntRange(events.NoIndex, 3).Draw(t, "k")
		if a != b && PodName(job, uid, a, i) == PodName(job, uid, b, k) {
			t.Fatalf("serials %d and %d share the name %s", a, b, PodName(job, uid, a, i))
		}
	})
}

// TestThePodNameShowsTheSerial, with or without an index, whatever the Job is called; other names show none.
func TestThePodNameShowsTheSerial(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name, serial := drawName(t), rapid.IntRange(0, suffixes-1).Draw(t, "serial")
		index := rapid.SampledFrom([]int{events.NoIndex, 0, 7, 99_999, 1<<31 - 1}).Draw(t, "index")
		if got, ok := serialIn(PodName(name, "uid", serial, index), name, "uid"); !ok || got != serial {
			t.Fatalf("got %d, %v", got, ok)
		}
	})
	own := PodName("pi", "uid", 3, events.NoIndex)
	for _, name := range []string{"", "-", "pi", "pi-", "pi-stranger", "pi-aaaaa", "pi-0-aaaaa", own + "-", "-" + own, own + "x", "x" + own,
		"pi-+1" + own[2:], "pi-01" + own[2:], PodName("other", "uid", 3, events.NoIndex), PodName("pi", "uid", 3, events.NoIndex) + "-0"} {
		if serial, ok := serialIn(name, "pi", "uid"); ok {
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

func TestPodName(t *testing.T) {
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
		got := PodName(c.job, "uid", c.serial, c.index)
		if got[:len(got)-5] != c.want {
			t.Errorf("PodName(%q, %d, %d) = %q, want %q and a suffix", c.job, c.serial, c.index, got, c.want)
		}
		if got != PodName(c.job, "uid", c.serial, c.index) || got == PodName(c.job, "other", c.serial, c.index) {
			t.Errorf("%q is not a function of the UID", got)
		}
	}
}

func testJob(change ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pi", UID: "job-uid", Labels: map[string]string{"job": "only"}},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{
				Labels:      map[string]string{batchv1.JobNameLabel: "pi", batchv1.ControllerUidLabel: "job-uid"},
				Annotations: map[string]string{"note": "kept"},
			},
			Spec: corev1.PodSpec{
				RestartPolicy:  corev1.RestartPolicyNever,
				InitContainers: []corev1.Container{{Name: "init"}},
				Containers:     []corev1.Container{{Name: "c", Env: []corev1.EnvVar{{Name: "A", Value: "b"}}}, {Name: "d"}},
			},
		}},
	}
	for _, f := range change {
		f(j)
	}
	return j
}

func TestBuildPod(t *testing.T) {
	fieldRef := corev1.EnvVar{Name: "JOB_COMPLETION_INDEX", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['batch.kubernetes.io/job-completion-index']"}}}
	yes := true
	base := func(change ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "pi-x",
			Labels: map[string]string{"batch.kubernetes.io/job-name": "pi", "batch.kubernetes.io/controller-uid": "job-uid",
				"jobstream.dev/managed": "true"},
			Annotations: map[string]string{"note": "kept", "jobstream.dev/serial": "4"},
			Finalizers:  []string{"batch.kubernetes.io/job-tracking"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "pi", UID: "job-uid",
				Controller: &yes, BlockOwnerDeletion: &yes}},
		}, Spec: testJob().Spec.Template.Spec}
		for _, f := range change {
			f(p)
		}
		return p
	}
	indexed := func(p *corev1.Pod) {
		p.Labels["batch.kubernetes.io/job-completion-index"] = "2"
		p.Annotations["batch.kubernetes.io/job-completion-index"] = "2"
		p.Spec.Hostname = "pi-2"
		p.Spec.InitContainers[0].Env = append(p.Spec.InitContainers[0].Env, fieldRef)
		for i := range p.Spec.Containers {
			p.Spec.Containers[i].Env = append(p.Spec.Containers[i].Env, fieldRef)
		}
	}
	for _, c := range []struct {
		name  string
		job   *batchv1.Job
		index int
		want  *corev1.Pod
	}{
		{"plain", testJob(), events.NoIndex, base()},
		{"empty template metadata",
			testJob(func(j *batchv1.Job) { j.Spec.Template.ObjectMeta = metav1.ObjectMeta{} }), events.NoIndex,
			base(func(p *corev1.Pod) {
				p.Labels = map[string]string{"jobstream.dev/managed": "true"}
				p.Annotations = map[string]string{"jobstream.dev/serial": "4"}
			})},
		{"finalizers of the user stay, ours stands once",
			testJob(func(j *batchv1.Job) {
				j.Spec.Template.Finalizers = []string{"batch.kubernetes.io/job-tracking", "example.com/mine"}
			}), events.NoIndex,
			base(func(p *corev1.Pod) { p.Finalizers = []string{"batch.kubernetes.io/job-tracking", "example.com/mine"} })},
		{"our mark cannot be overridden by the template",
			testJob(func(j *batchv1.Job) {
				j.Spec.Template.Labels[v1alpha1.ManagedLabel] = "false"
				j.Spec.Template.Annotations[v1alpha1.SerialAnnotation] = "77"
			}), events.NoIndex, base()},
		{"indexed", testJob(), 2, base(indexed)},
		{"indexed, hostname of the template is overwritten",
			testJob(func(j *batchv1.Job) { j.Spec.Template.Spec.Hostname = "mine" }), 2, base(indexed)},
		{"indexed, variable of the user stays",
			testJob(func(j *batchv1.Job) {
				j.Spec.Template.Spec.Containers[1].Env = []corev1.EnvVar{{Name: "JOB_COMPLETION_INDEX", Value: "mine"}}
			}), 2,
			base(indexed, func(p *corev1.Pod) {
				p.Spec.Containers[1].Env = []corev1.EnvVar{{Name: "JOB_COMPLETION_INDEX", Value: "mine"}}
			})},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := c.job.DeepCopy()
			got := BuildPod(c.job, effect.CreatePod{Job: "pi", Name: "pi-x", Serial: 4, Index: c.index}, nil)
			if !equality.Semantic.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
			got.Labels["x"], got.Spec.Containers[0].Name = "changed", "changed"
			if !equality.Semantic.DeepEqual(c.job, before) {
				t.Error("the Job was changed, or shares memory with the Pod")
			}
			if s := events.ProjectPod(got); s.Serial != 4 || s.Index != c.index || !s.Held || s.Owner != "pi" {
				t.Errorf("the projection does not recognize it: %+v", s)
			}
			if events.OwnerUID(got) != "job-uid" {
				t.Errorf("owner %q", events.OwnerUID(got))
			}
		})
	}
}

// TestPodsCarryTheFailuresOfTheirIndex, if each index has a limit of its own.
func TestPodsCarryTheFailuresOfTheirIndex(t *testing.T) {
	for _, c := range []struct {
		name             string
		e                effect.CreatePod
		failures, excuse string
	}{
		{"no limit per index", effect.CreatePod{Index: 2, IndexFailures: 3}, "", ""},
		{"the first Pod", effect.CreatePod{Index: 2, PerIndex: true}, "0", ""},
		{"after failures", effect.CreatePod{Index: 2, PerIndex: true, IndexFailures: 3, IndexIgnoredFailures: 1}, "3", "1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := BuildPod(testJob(), c.e, nil)
			if got := p.Annotations[batchv1.JobIndexFailureCountAnnotation]; got != c.failures {
				t.Errorf("failures %q, want %q", got, c.failures)
			}
			if got := p.Annotations[batchv1.JobIndexIgnoredFailureCountAnnotation]; got != c.excuse {
				t.Errorf("ignored failures %q, want %q", got, c.excuse)
			}
			if s := events.ProjectPod(p); c.e.PerIndex && (s.IndexFailures != c.e.IndexFailures || s.IndexIgnoredFailures != c.e.IndexIgnoredFailures) {
				t.Errorf("the projection reads %d and %d", s.IndexFailures, s.IndexIgnoredFailures)
			}
		})
	}
}

func TestHostnameIsALabel(t *testing.T) {
	for job, want := range map[string]string{
		"pi":                                   "pi-7",
		"pi.v1":                                "pi-v1-7",
		strings.Repeat("a", 63):                strings.Repeat("a", 61) + "-7",
		strings.Repeat("a", 60) + "-b":         strings.Repeat("a", 60) + "-7",
		strings.Repeat("a.", 40) + "end":       strings.TrimRight(strings.Repeat("a-", 30)+"a", "-") + "-7",
		strings.Repeat("a", 60) + ".b.c.d.e.f": strings.Repeat("a", 60) + "-7",
	} {
		got := hostname(job, "7")
		if got != want || len(utilvalidation.IsDNS1123Label(got)) > 0 {
			t.Errorf("hostname(%q) = %q, want the label %q", job, got, want)
		}
	}
	if slices.Contains([]byte(events.SuffixDigits), 'a') || len(events.SuffixDigits) != 27 {
		t.Error("the alphabet is not that of Kubernetes")
	}
}
