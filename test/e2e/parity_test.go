package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// manifests is where the Job manifests of the Kubernetes documentation are: beside the repository, not in it.
const manifests = harness.Root + "/../shared/data/manifests"

// Each documented Job ends under us as it ends under the built-in controller, on the same node: same status, same Pods
// down to their whole spec, same logs, same Events.
func TestDocumentedJobsEndAsUnderTheBuiltInController(t *testing.T) {
	if _, err := os.Stat(manifests); err != nil {
		t.Skipf("skipped, the Kubernetes documentation's manifests are not beside the checkout: %v", err)
	}
	for _, tt := range []struct {
		file  string
		needs [][]string // commands that must work on this machine
	}{
		{"job-pi.yaml", [][]string{{"perl", "-Mbignum=bpi", "-e", "1"}}},
		{"indexed-job.yaml", [][]string{{"bash", "-c", "true"}, {"rev", "--version"}}},
		{"job-sidecar.yaml", [][]string{{"sh", "-c", "true"}, {"tail", "--version"}}},
	} {
		t.Run(tt.file, func(t *testing.T) {
			for _, c := range tt.needs {
				if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
					t.Skipf("skipped, this machine cannot run %q: %v %s", c, err, out)
				}
			}
			s := shared(t)
			builtIn := endOf(t, s, readManifest(t, tt.file))
			ours := readManifest(t, tt.file)
			ours.Spec.ManagedBy = ptr.To(v1alpha1.DefaultManagedBy)
			if diff := differences(builtIn, endOf(t, s, ours)); diff != "" {
				t.Errorf("what the built-in controller has (-) and we have (+):\n%s", diff)
			}
		})
	}
}

func readManifest(t *testing.T, file string) *batchv1.Job {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(manifests, file))
	if err != nil {
		t.Fatal(err)
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return object.(*batchv1.Job)
}

// portrait is what a finished Job shows, without what differs from run to run.
type portrait struct {
	Status batchv1.JobStatus
	Events map[string]int
	Pods   []podPortrait
}

type podPortrait struct {
	Labels, Annotations map[string]string
	Finalizers          []string
	Owner               string
	Spec                corev1.PodSpec
	Phase               corev1.PodPhase
	Exits, Logs         map[string]string
}

// endOf runs the Job in a namespace of its own and takes its portrait in the end.
func endOf(t *testing.T, s *harness.System, j *batchv1.Job) portrait {
	t.Helper()
	p := s.Space(t)
	p.Apply(j)
	j = p.AwaitEnd(j.Name, batchv1.JobComplete, time.Minute)
	out := portrait{Status: timeless(t, j.Status)}
	// Events are sent in the background.
	p.Await(j.Name, time.Minute, "to have an Event that it has completed", func(*batchv1.Job) bool {
		out.Events = map[string]int{}
		for _, e := range p.Events(j.Name) {
			out.Events[e.Type+" "+e.Reason]++
		}
		return out.Events["Normal Completed"] > 0
	})
	pods := p.Pods(j.Name)
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(indexOf(a), indexOf(b)) })
	for i := range pods {
		out.Pods = append(out.Pods, portray(t, p, j, &pods[i]))
	}
	return out
}

func indexOf(p corev1.Pod) string { return p.Annotations[batchv1.JobCompletionIndexAnnotation] }

// timeless checks that the times are there and takes them away.
func timeless(t *testing.T, s batchv1.JobStatus) batchv1.JobStatus {
	t.Helper()
	if s.StartTime == nil || s.CompletionTime == nil || s.CompletionTime.Before(s.StartTime) {
		t.Errorf("started %v, completed %v", s.StartTime, s.CompletionTime)
	}
	s.StartTime, s.CompletionTime = nil, nil
	for i := range s.Conditions {
		c := &s.Conditions[i]
		if c.LastProbeTime.IsZero() || c.LastTransitionTime.IsZero() {
			t.Errorf("condition %s has no times", c.Type)
		}
		c.LastProbeTime.Reset()
		c.LastTransitionTime.Reset()
	}
	return s
}

// portray leaves out our own label and annotation, and puts words in place of UIDs and generated names.
func portray(t *testing.T, p *harness.Space, j *batchv1.Job, pod *corev1.Pod) podPortrait {
	t.Helper()
	for _, m := range []map[string]string{pod.Labels, pod.Annotations} {
		maps.DeleteFunc(m, func(k, _ string) bool { return k == v1alpha1.ManagedLabel || k == v1alpha1.SerialAnnotation })
		for k, v := range m {
			m[k] = strings.ReplaceAll(v, string(j.UID), "UID-OF-JOB")
		}
	}
	if len(pod.Annotations) == 0 {
		pod.Annotations = nil // ours was the only one
	}
	out := podPortrait{Labels: pod.Labels, Annotations: pod.Annotations, Finalizers: pod.Finalizers, Spec: pod.Spec,
		Phase: pod.Status.Phase, Exits: map[string]string{}, Logs: map[string]string{}}
	for _, o := range pod.OwnerReferences {
		out.Owner += fmt.Sprintf("%s %s %s mine=%v controller=%v blocks=%v", o.APIVersion, o.Kind, o.Name, o.UID == j.UID,
			ptr.Deref(o.Controller, false), ptr.Deref(o.BlockOwnerDeletion, false))
	}
	sidecars := map[string]bool{}
	for _, c := range pod.Spec.InitContainers {
		sidecars[c.Name] = ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
	}
	for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if c.State.Terminated == nil {
			t.Errorf("container %s of Pod %s has not ended", c.Name, pod.Name)
			continue
		}
		out.Exits[c.Name] = fmt.Sprintf("%d %s, %d restarts", c.State.Terminated.ExitCode, c.State.Terminated.Reason, c.RestartCount)
		log, err := p.Client.CoreV1().Pods(p.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: c.Name}).DoRaw(t.Context())
		if err != nil {
			t.Error(err)
		}
		out.Logs[c.Name] = string(log)
		if sidecars[c.Name] {
			out.Logs[c.Name] = sidecarLog(t, string(log))
		}
	}
	return out
}

// sidecarLog checks the log of "tail -F" and stands for it. How much of a file a sidecar has passed on when its Pod ends,
// and what tail remarks about a file that is not there yet, is a matter of milliseconds under any controller.
func sidecarLog(t *testing.T, log string) string {
	t.Helper()
	for line := range strings.Lines(log) {
		if !strings.HasPrefix(line, "tail: ") && line != "logging\n" {
			t.Errorf("the sidecar has logged %q", line)
		}
	}
	return "of a sidecar"
}

// differences compares two portraits line by line.
func differences(a, b portrait) string {
	lines := func(p portrait) []string {
		text, err := json.MarshalIndent(p, "", "  ")
		if err != nil {
			return []string{err.Error()}
		}
		return strings.Split(string(text), "\n")
	}
	old, now := lines(a), lines(b)
	if slices.Equal(old, now) {
		return ""
	}
	first := 0
	for first < min(len(old), len(now)) && old[first] == now[first] {
		first++
	}
	last := 0
	for last < min(len(old), len(now))-first && old[len(old)-1-last] == now[len(now)-1-last] {
		last++
	}
	from := max(0, first-3)
	return "  " + strings.Join(old[from:first], "\n  ") + "\n- " + strings.Join(old[first:len(old)-last], "\n- ") +
		"\n+ " + strings.Join(now[first:len(now)-last], "\n+ ")
}
