package kubectl

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jobstream/jobstream/internal/dev/controlplane"
)

// offered returns the words that a completion has printed, without their descriptions and the directive.
func offered(out string) string {
	words, _, _ := strings.Cut(out, ":")
	var all []string
	for line := range strings.Lines(words) {
		word, _, _ := strings.Cut(line, "\t") // cut off the description
		all = append(all, strings.TrimSpace(word))
	}
	return strings.Join(all, " ")
}

// newCompletable returns a namespace with objects to complete.
func newCompletable(t *testing.T) *world {
	w := newWorld(t)
	w.newScheduled("nightly", nil)
	w.newScheduled("hourly", nil)
	w.newJob("nightly", nil)
	w.newJob("pi", nil)
	cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "backup"}, Spec: batchv1.CronJobSpec{Schedule: "@daily",
		JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: podTemplate}}}}
	if _, err := w.BatchV1().CronJobs(w.ns).Create(t.Context(), cron, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestComplete: _ stands for an empty word at the cursor.
func TestComplete(t *testing.T) {
	w := newCompletable(t)
	for _, tt := range []struct{ line, want string }{
		{"su", "suspend"},
		{"wait _", "nightly pi"},
		{"wait n", "nightly"},
		{"wait nightly _", "pi"},
		{"watch job/", "job/nightly job/pi"},
		{"wait jobs/p", "jobs/pi"},
		{"wait cronjob/", ""},
		{"logs _", "nightly pi"},
		{"logs pi _", ""},
		{"rerun p", "pi"},
		{"next _", "hourly nightly"},
		{"history h", "hourly"},
		{"history nightly _", ""},
		{"history -o _", "wide json yaml jsonpath= go-template="},
		{"list _", ""},
		{"list -o _", "wide json yaml name jsonpath= go-template="},
		{"trigger h", "hourly"},
		{"backfill _", "hourly nightly"},
		{"backfill nightly _", ""},
		{"suspend _", "hourly nightly job/nightly pi"},
		{"why _", "hourly nightly job/nightly pi"},
		{"why nightly _", ""},
		{"why pi -o j", "json jsonpath="},
		{"suspend schedjob/", "schedjob/hourly schedjob/nightly"},
		{"resume job/n", "job/nightly"},
		{"resume -A _", "jobs scheduledjobs"},
		{"suspend -l app=x jobs _", "scheduledjobs"},
		{"convert _", "backup"},
		{"convert cronjob/", "cronjob/backup"},
		{"convert --to=CronJob _", "hourly nightly"},
		{"convert --to _", "ScheduledJob CronJob"},
		{"run _", ""},
		{"run x --restart _", "OnFailure Never"},
		{"run x --restart=N", "Never"},
		{"run x --dry-run _", "none client server"},
		{"suspend --dry-run _", "none server"},
		{"stop --dry-run _", "none server"},
		{"doctor -o _", "text json"},
		{"decisions _", "hourly nightly job/nightly pi"},
		{"decisions pi _", ""},
		{"replay sch", ""},
		{"replay scheduledjob/", "scheduledjob/hourly scheduledjob/nightly"},
		{"events _", ""},
		{"events --type _", "JobStart JobFinish PodFinish TickDecided"},
		{"events -o _", "text json"},
		{"-o _", "wide json yaml name jsonpath= go-template="},
		{"run x --parallelism _", ""},
		{"wait --context _", clusterContext(t)},
		{"-n " + w.ns[:len(w.ns)-1], w.ns},
		{"wait -n " + w.ns, w.ns},
		{"wait -n no-such-namespace _", ""},
	} {
		args := strings.Fields(tt.line)
		if args[len(args)-1] == "_" {
			args[len(args)-1] = ""
		}
		if got := w.call(append([]string{"__complete"}, args...)...); got.code != 0 || offered(got.out) != tt.want || !strings.Contains(got.out, "\n:4") && !strings.HasPrefix(got.out, ":4") && !strings.Contains(got.out, ":3") {
			t.Errorf("%s: want %q and no files, got %s", tt.line, tt.want, got)
		}
	}
	if len(w.requests) > 0 {
		t.Errorf("it has changed something: %q", w.requests)
	}
}

// clusterContext is the only context of the kubeconfig.
func clusterContext(t *testing.T) string {
	config, err := clientcmd.LoadFromFile(apiServer(t).Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	return config.CurrentContext
}

// TestCompleteFiles: the shell completes arguments that are files.
func TestCompleteFiles(t *testing.T) {
	for _, line := range []string{"convert -f x", "run x --per-completion-env F=@x", "run x -- x", "--kubeconfig x", "history --nats-ca x"} {
		if got := call(t, "", append([]string{"__complete"}, strings.Fields(line)...)); got.code != 0 || got.out != ":0\n" {
			t.Errorf("%s: got %s", line, got)
		}
	}
}

// TestCompleteThroughKubectl: kubectl finds the completer in PATH and passes its output on to the shell.
func TestCompleteThroughKubectl(t *testing.T) {
	w := newCompletable(t)
	assets, err := controlplane.Assets()
	if err != nil {
		t.Skip("needs kubectl: ", err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"kubectl-jobstream", completer} {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{asPlugin + "=1", "HOME=" + dir, "KUBECONFIG=" + apiServer(t).Kubeconfig(), "PATH=" + dir + ":" + assets + ":" + os.Getenv("PATH")}
	enter := func(shell, line string, args ...string) string {
		c := exec.CommandContext(t.Context(), shell, append([]string{"-c", line}, args...)...)
		c.Env = env
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return string(out)
	}
	// Again, as on a busy machine the names may come later than a user waits.
	eventually(t, func() string {
		if got := offered(enter("sh", "kubectl __complete jobstream -n "+w.ns+" suspend ''")); got != "hourly nightly job/nightly pi" {
			return fmt.Sprintf("kubectl to pass on all names, it passes on %q", got)
		}
		return ""
	})
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("needs bash, too: ", err)
	}
	// This is what the Tab key does: it calls the function of kubectl's own script with the words of the line. The script gets the
	// words from a function of the package bash-completion, which may be missing here.
	const tab = `source <(kubectl completion bash)
		_get_comp_words_by_ref() { words=("${COMP_WORDS[@]}") cword=$COMP_CWORD cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}; }
		__ltrim_colon_completions() { :; }
		COMP_WORDS=(kubectl jobstream -n "$0" trigger h) COMP_CWORD=5 COMP_LINE="${COMP_WORDS[*]}" COMP_POINT=${#COMP_LINE} COMP_TYPE=9
		compopt() { :; }
		__start_kubectl
		printf '%s\n' "${COMPREPLY[@]}"`
	eventually(t, func() string {
		if got := strings.TrimSpace(enter("bash", tab, w.ns)); got != "hourly" {
			return fmt.Sprintf("bash to offer the name, it offers %q", got)
		}
		return ""
	})
}

// TestCompleteIsNeverLate: neither an API server that does not respond nor thousands of names make the user wait.
func TestCompleteIsNeverLate(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if usual := newTool(genericiooptions.IOStreams{}).completionTime; usual != 1500*time.Millisecond {
		t.Errorf("a user waits for %v", usual)
	}
	const longest = 5 * time.Second
	limits := make(chan time.Duration, 10)
	got := call(t, "", []string{"__complete", "--server=https://" + silent.Addr().String(), "--insecure-skip-tls-verify", "suspend", ""}, onTheWay(func(q *http.Request) {
		if until, limited := q.Context().Deadline(); limited {
			limits <- time.Until(until)
		}
	}), func(p *tool) { p.completionTime = longest })
	if got.code != 0 || offered(got.out) != "" {
		t.Errorf("got %s", got)
	}
	select {
	case limit := <-limits:
		if limit > longest {
			t.Errorf("a request may take %v", limit)
		}
	default:
		t.Error("there was no request, or it may take as long as TLS waits: 10 s")
	}
	if got := call(t, "", []string{"__complete", "--kubeconfig=/nowhere", "suspend", ""}); got.code != 0 || offered(got.out) != "" {
		t.Errorf("got %s", got)
	}
	w := newWorld(t)
	first := w.newJob("j-000", nil)
	w.store("jobs", 1, mostNames+5, func(i int) controlplane.Object { return jobLike(first, fmt.Sprintf("j-%03d", i)) })
	if got := strings.Fields(offered(w.call("__complete", "wait", "").out)); len(got) != mostNames {
		t.Errorf("%d names", len(got))
	}
	if got := offered(w.call("__complete", "wait", "j-204").out); got != "j-204" {
		t.Errorf("of the last name it knows %q", got)
	}
}
