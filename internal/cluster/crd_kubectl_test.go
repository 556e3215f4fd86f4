package cluster_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
	"github.com/jobstream/jobstream/internal/dev/controlplane"
)

var update = flag.Bool("update", false, "write what kubectl explains into testdata/explain")

// kubectl runs kubectl in the test's namespace, and returns what it prints.
func (k kindTest) kubectl(args ...string) string {
	k.Helper()
	dir, err := controlplane.Assets()
	if err != nil {
		k.Fatal(err)
	}
	var out []byte
	clustertest.Eventually(k, func() string { // the API server shows a new kind a moment after it serves it
		c := exec.CommandContext(k.Context(), filepath.Join(dir, "kubectl"), append([]string{"--kubeconfig", clustertest.ControlPlane(k.T).Kubeconfig(), "-n", k.NS}, args...)...)
		out, err = c.CombinedOutput()
		for _, unknown := range []string{"no matches for kind", "doesn't have a resource type", "couldn't find resource"} {
			if err != nil && strings.Contains(string(out), unknown) {
				return string(out)
			}
		}
		return ""
	})
	if err != nil {
		k.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// TestKubectl: the definition fits into the annotation of a client-side apply, and objects print readably.
func TestKubectl(t *testing.T) {
	k := newKindTest(t)
	kubectl := k.kubectl
	kubectl("apply", "-f", "../../deploy/crd/scheduledjobs.yaml")
	definition, err := k.definitions.Get(t.Context(), "scheduledjobs.jobstream.dev", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const limit = 256 << 10 // of all annotations of an object (Kubernetes 1.36, TotalAnnotationSizeLimitB)
	size := len(definition.GetAnnotations()[corev1.LastAppliedConfigAnnotation])
	t.Logf("the annotation of a client-side apply has %d of %d bytes", size, limit)
	if size == 0 || size > limit/2 {
		t.Errorf("the annotation of a client-side apply has %d of %d bytes: half of it is for what Pods will have one day", size, limit)
	}

	file := filepath.Join(t.TempDir(), "hello.yaml")
	if err := os.WriteFile(file, []byte(cronJob), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl("apply", "-f", file)
	live, err := k.Get(t.Context(), "hello", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	j := typed(t, live)
	now := time.Now()
	j.Status = v1alpha1.ScheduledJobStatus{LastScheduleTime: new(metav1.NewTime(now.Add(-10 * time.Minute))), NextScheduleTime: new(metav1.NewTime(time.Unix(4e9, 0))),
		LastDecision: "Skipped", LastRun: &v1alpha1.EndedRun{JobName: "hello-zzzzz", Result: "Failed", CompletionTime: metav1.NewTime(now.Add(-12 * time.Minute))},
		ActiveCount: new(int32(2)), Active: []corev1.ObjectReference{{Name: "hello-bcdfghjkl"}, {Name: "hello-lkjhgfdcb"}}, Successful: 3, Failed: 2, Missed: 1}
	if _, err := k.UpdateStatus(t.Context(), untyped(t, j), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]string{
		"get schedjob hello": `NAME SCHEDULE TIMEZONE SUSPEND ACTIVE LAST SCHEDULE NEXT LAST RESULT ENDED MISSED AGE ` +
			`hello [*] [*] [*] [*] [*] false 2 10m 2096-10-02T07:06:40Z Failed 12m 1 \d+s`,
		"get scheduledjobs hello -o wide": `NAME SCHEDULE RUN AT TIMEZONE SUSPEND ACTIVE LAST SCHEDULE NEXT LAST RESULT ENDED MISSED AGE SUCCESSFUL FAILED LAST DECISION ` +
			`hello [*] [*] [*] [*] [*] false 2 10m 2096-10-02T07:06:40Z Failed 12m 1 \d+s 3 2 Skipped`,
		"get all": `.* scheduledjob.jobstream.dev/hello .*`,
	} {
		got := kubectl(strings.Fields(what)...)
		t.Logf("kubectl %s\n%s", what, got)
		if !regexp.MustCompile("^" + want + "$").MatchString(strings.Join(strings.Fields(got), " ")) {
			t.Errorf("kubectl %s shows\n%s", what, got)
		}
	}
}

// TestExplain: "kubectl explain" shows what every field means, as in testdata/explain. A file is named like the arguments.
func TestExplain(t *testing.T) {
	k := newKindTest(t)
	for file, args := range map[string][]string{
		"scheduledjob.txt":                {"scheduledjob"},
		"scheduledjob.spec.txt":           {"scheduledjob.spec"},
		"scheduledjob.spec.recursive.txt": {"scheduledjob.spec", "--recursive"},
		"scheduledjob.status.txt":         {"scheduledjob.status"},
		"scheduledjob.status.recent.txt":  {"scheduledjob.status.recent"},
	} {
		t.Run(file, func(t *testing.T) {
			golden := filepath.Join("testdata", "explain", file)
			explain := func() string { return k.kubectl(append([]string{"explain"}, args...)...) }
			if *update {
				if err := os.WriteFile(golden, []byte(explain()), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			got := explain()
			clustertest.Eventually(t, func() string { // the API server describes a new definition a moment after it serves it
				if got == string(want) {
					return ""
				}
				got = explain()
				return "kubectl explain " + strings.Join(args, " ") + " shows\n" + got + "\nand not what is in " + golden + "; to accept it, run this test with -args -update"
			})
		})
	}
}
