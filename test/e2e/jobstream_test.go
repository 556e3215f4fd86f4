package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/dev/controlplane"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// newcomer is a user who has built the programs, has a kubeconfig of a cluster without jobstream, and types what README.md shows
// under "Use it on your cluster".
type newcomer struct {
	*terminal
	port   string // of NATS
	health string
}

// arrive opens a terminal in which bin/ is what "make build" builds. Ports are free ones instead of the usual ones.
func arrive(t *testing.T, s *harness.System) *newcomer {
	t.Helper()
	p := s.Space(t)
	assets, err := controlplane.Assets()
	if err != nil {
		t.Fatal(err)
	}
	built, err := plugin()
	if err != nil {
		t.Fatal(err)
	}
	n := &newcomer{terminal: &terminal{Space: p, dir: t.TempDir()}, health: unusedAddress(t)}
	if err := os.Mkdir(filepath.Join(n.dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{programs(t).Jobstream, filepath.Join(built, "kubectl-jobstream")} {
		if err := os.Link(from, filepath.Join(n.dir, "bin", filepath.Base(from))); err != nil {
			t.Fatal(err)
		}
	}
	if _, n.port, err = net.SplitHostPort(unusedAddress(t)); err != nil {
		t.Fatal(err)
	}
	n.env = []string{
		"HOME=" + n.dir, "KUBECONFIG=" + n.kubeconfig(), "PATH=" + assets + string(os.PathListSeparator) + os.Getenv("PATH"),
		"JOBSTREAM_NATS_PORT=" + n.port, "JOBSTREAM_METRICS_BIND_ADDRESS=127.0.0.1:0", "JOBSTREAM_HEALTH_BIND_ADDRESS=" + n.health,
		"JOBSTREAM_CLUSTER_NAME=" + harness.ClusterName,
	}
	return n
}

// kubeconfig returns one whose namespace is the test's.
func (n *newcomer) kubeconfig() string {
	n.Helper()
	c, err := clientcmd.LoadFromFile(n.ControlPlane.Kubeconfig())
	if err != nil {
		n.Fatal(err)
	}
	for _, context := range c.Contexts {
		context.Namespace = n.Namespace
	}
	file := filepath.Join(n.dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*c, file); err != nil {
		n.Fatal(err)
	}
	return file
}

// start starts a command that runs until it is stopped, and returns when it prints that it manages Jobs.
func (n *newcomer) start(command string) *harness.Process {
	n.Helper()
	p := &harness.Process{Name: "jobstream", Path: "/bin/sh", Args: []string{"-c", "cd '" + n.dir + "' && exec " + command},
		Env: n.env, LogFile: filepath.Join(n.dir, "jobstream.log")}
	began := time.Now()
	if err := p.Start(); err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() {
		if err := p.Stop(); err != nil {
			n.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(n.Context(), 5*time.Minute)
	defer cancel()
	if _, err := p.Await(ctx, regexp.MustCompile(`(Ctrl-C) stops jobstream`)); err != nil {
		n.Fatal(err)
	}
	n.Logf("$ %s   # %.1f s\n%s", command, time.Since(began).Seconds(), p.Printed())
	return p
}

// readme fails the test unless README.md has the lines.
func (n *newcomer) readme(lines ...string) {
	n.Helper()
	text, err := os.ReadFile(filepath.Join(harness.Root, "README.md"))
	if err != nil {
		n.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Use it on your cluster\n")
	for _, line := range lines {
		if !strings.Contains(section, "\n"+line+"\n") {
			n.Errorf("README.md does not have %q under \"Use it on your cluster\"", line)
		}
	}
}

// twenty is a Job of 20 Pods, of which some end in each second, and its observers.
type twenty struct {
	ledger *harness.Ledger
	trail  *harness.Trail
	job    *batchv1.Job
}

const twentyPods = 20

func (n *newcomer) applyTwenty(name string) *twenty {
	n.Helper()
	w := &twenty{ledger: harness.NewLedger(n)}
	w.job = n.Apply(harness.Shell(name, w.ledger.Script("0.5", ""), harness.Size(twentyPods, 2, 0), harness.Indexed))
	w.trail = n.Follow(w.job)
	return w
}

// inTheMiddle waits until some Pods are counted, and fails the test if all are.
func (n *newcomer) inTheMiddle(w *twenty) {
	n.Helper()
	if j := n.Await(w.job.Name, time.Minute, "to be in the middle", func(j *batchv1.Job) bool { return j.Status.Succeeded >= 4 }); j.Status.Succeeded == twentyPods {
		n.Fatal("it is over: this proves nothing")
	}
}

// exact waits for the end. Every index has run once, in a Pod of its own, and is counted once.
func (n *newcomer) exact(w *twenty) {
	n.Helper()
	if sum, pods := n.counted(w); sum.Succeeded != twentyPods || pods != twentyPods {
		n.Errorf("%d Pods, and %+v", pods, sum)
	}
}

// counted waits for the end. Every index has run, and is counted once; no Pod is held any more. It returns what has run, and how many
// Pods are left.
func (n *newcomer) counted(w *twenty) (ran harness.Tally, pods int) {
	n.Helper()
	end := n.AwaitEnd(w.job.Name, batchv1.JobComplete, time.Minute)
	ran = w.ledger.Read(n)
	if end.Status.Succeeded != twentyPods || end.Status.Failed != 0 || ran.Indexes != twentyPods || ran.Failed != 0 {
		n.Errorf("%s: %+v", harness.Brief(end.Status), ran)
	}
	left := n.Pods(w.job.Name)
	if held := harness.Held(left); len(held) != 0 {
		n.Errorf("held %v", held)
	}
	for _, wrong := range w.trail.Wrong() {
		n.Error(wrong)
	}
	return ran, len(left)
}

// From a kubeconfig of a fresh control plane to a finished Job, by the commands of README.md.
func TestFirstHour(t *testing.T) {
	t.Parallel()
	n := arrive(t, own(t, harness.Config{Bare: true}))
	const begin, hello, tick, get, doctor, again = "bin/jobstream --install-crds", "bin/kubectl-jobstream run hello --image=busybox --logs -- echo hello",
		`bin/kubectl-jobstream run tick --run-at="*/10 * * * * *" --image=busybox -- date`, "kubectl get scheduledjobs,jobs", "bin/jobstream doctor", "bin/jobstream"
	n.readme(begin, hello, tick, get, doctor)

	t.Log("without the kind ScheduledJob, and without the flag, Jobs run")
	p := n.start(again)
	if said := p.Printed(); !hasAll(said, []string{"ScheduledJobs  off", "Jobs run without it", "--install-crds"}) {
		t.Errorf("it does not print that ScheduledJobs are off:\n%s", said)
	}
	if out := n.succeeds(hello); !strings.Contains(out, "hello") {
		t.Errorf("%q", out)
	}
	n.AwaitEnd("hello", batchv1.JobComplete, time.Minute)
	n.succeeds("kubectl delete job hello")
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if code, err := p.Exit(time.Second); code != 0 || err != nil {
		t.Errorf("exit code %d after SIGTERM, %v", code, err)
	}

	p = n.start(begin)
	if said := p.Printed(); !hasAll(said, []string{`"managedBy: jobstream.dev/reconciler" are jobstream's now`, "v1.36.", n.ControlPlane.URL(), "ScheduledJobs  on", "nats://127.0.0.1:" + n.port,
		n.dir + "/.local/state/jobstream/127.0.0.1_", "http://" + n.health + "/readyz", "kubectl-jobstream run hello"}) {
		t.Errorf("it does not print what it is connected to:\n%s", said)
	}
	if out := n.succeeds(hello); !strings.Contains(out, "hello") {
		t.Errorf("%q", out)
	}
	n.succeeds(tick)
	n.AwaitSchedule("tick", time.Minute, "to have run", func(j *v1alpha1.ScheduledJob) bool { return j.Status.Successful > 0 })
	if out := n.succeeds(get); !hasAll(out, []string{"scheduledjob.jobstream.dev/tick", "job.batch/hello", "Complete"}) {
		t.Error("kubectl does not show them")
	}
	harness.Until(t, timeout, "the doctor to report that all is well", func(context.Context) error {
		if out, complaint, code := n.enter(doctor); code != 0 || !hasAll(out, []string{"reconcilers", "1 live", "all are allowed", " 0 WARN, 0 FAIL"}) {
			return fmt.Errorf("exit code %d: %s%s", code, out, complaint)
		}
		return nil
	})

	t.Log("kill -9 in the middle of a Job of 20 Pods")
	w := n.applyTwenty("twenty")
	n.inTheMiddle(w)
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	n.start(again)
	n.exact(w)
	before := n.Scheduled("tick").Status.Successful
	n.AwaitSchedule("tick", time.Minute, "to go on", func(j *v1alpha1.ScheduledJob) bool { return j.Status.Successful > before })

	t.Log("one at a time")
	if _, complaint, code := n.enter("JOBSTREAM_NATS_PORT=0 JOBSTREAM_HEALTH_BIND_ADDRESS=0 " + again); code != 1 || !hasAll(complaint, []string{"another jobstream is running in " + n.dir, "--dir"}) {
		t.Errorf("a second one: exit code %d, %s", code, complaint)
	}
}

// A user with read permissions only gets no half of a service: the program names what is missing, and how to get it.
func TestJobstreamWithoutPermissions(t *testing.T) {
	s := shared(t)
	n := arrive(t, s)
	if err := n.visitor(t); err != nil {
		t.Fatal(err)
	}
	file, err := s.KubeconfigAs(t.Context(), "visitor")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		flags string
		says  []string
	}{
		{"", []string{"does not allow jobstream to", "watch jobs.batch", "create pods", "update jobs/status.batch", "administrator", "trigger-rbac.yaml"}},
		{"--install-crds", []string{"cannot install the kind ScheduledJob", "leave out --install-crds", "kubectl apply -k deploy/crd"}},
	} {
		if _, complaint, code := n.enter(fmt.Sprintf("bin/jobstream --kubeconfig=%s %s", file, tt.flags)); code != 1 || !hasAll(complaint, tt.says) {
			t.Errorf("%q: exit code %d, want %q:\n%s", tt.flags, code, tt.says, complaint)
		}
	}
}

// visitor creates a service account without permissions.
func (n *newcomer) visitor(t *testing.T) error {
	const namespace = "jobstream" // the namespace of KubeconfigAs
	_, err := n.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	t.Cleanup(func() {
		_ = n.Client.CoreV1().Namespaces().Delete(context.Background(), namespace, metav1.DeleteOptions{})
	})
	_, err = n.Client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "visitor"}}, metav1.CreateOptions{})
	return err
}
