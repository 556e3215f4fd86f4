package parity

import (
	"os/exec"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// A Case is a Job that is run under both controllers.
type Case struct {
	// File is the manifest: of testdata, or of the Kubernetes documentation where Documented is set.
	File       string
	Documented bool
	// Name tells cases of one manifest apart; File where it is empty.
	Name string
	// Shows is what the case is about, in a few words.
	Shows string

	// needs are commands that must work on this machine.
	needs [][]string
	// prepare does what must be done before the Job is there, and may change it.
	prepare func(s *Side, j *batchv1.Job)
	// create makes the Job where that takes more than creating it. It sets s.JobName.
	create func(s *Side, j *batchv1.Job)
	// steps are what is done to the Job while it runs.
	steps func(s *Side)
	// ends is the condition with which it ends; empty: the steps have seen to its end, and the Job is gone.
	ends batchv1.JobConditionType
	// after is what is looked at once the portrait is taken.
	after func(s *Side)
	// within is how long it may take, a minute where it is 0.
	within time.Duration
}

// Title is the case's name.
func (c Case) Title() string {
	if c.Name != "" {
		return c.Name
	}
	return c.File
}

// Run runs the case under both controllers at once and compares. What is on record as a difference is told to seen.
func (c Case) Run(t *testing.T, s *harness.System, seen *Seen) {
	c.skipUnlessPossible(t)
	var builtIn, ours Portrait
	t.Run("under", func(t *testing.T) {
		t.Run("built-in", func(t *testing.T) { t.Parallel(); builtIn = c.portray(t, s, false) })
		t.Run("ours", func(t *testing.T) { t.Parallel(); ours = c.portray(t, s, true) })
	})
	if t.Failed() {
		return // one of them has no portrait, and has said why
	}
	seen.take(&builtIn, &ours)
	if diff := compare(builtIn, ours); diff != "" {
		t.Errorf("what the built-in controller has (-) and we have (+):\n%s", diff)
	}
	t.Logf("both: %s", builtIn.brief())
}

// skipUnlessPossible skips what this checkout or this machine has not got.
func (c Case) skipUnlessPossible(t *testing.T) {
	t.Helper()
	if err := c.available(); err != nil {
		t.Skipf("skipped, the Kubernetes documentation's manifests are not beside the checkout: %v", err)
	}
	for _, command := range c.needs {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Skipf("skipped, this machine cannot run %q: %v %s", command, err, out)
		}
	}
}

// portray runs the Job under one controller, in a namespace of its own, and takes its portrait in the end.
func (c Case) portray(t *testing.T, system *harness.System, ours bool) Portrait {
	s := &Side{Space: system.Space(t), Dir: t.TempDir(), Ours: ours, timeout: c.within}
	if s.timeout == 0 {
		s.timeout = time.Minute
	}
	j := c.read(t, s.Dir)
	s.JobName = j.Name
	if ours {
		j.Spec.ManagedBy = ptr.To(v1alpha1.DefaultManagedBy)
	}
	if c.prepare != nil {
		c.prepare(s, j)
	}
	if c.create != nil {
		c.create(s, j)
	} else {
		s.JobUID = s.Apply(j).UID
	}
	if c.steps != nil {
		c.steps(s)
	}
	if c.ends != "" {
		s.AwaitEnd(s.JobName, c.ends, s.timeout)
	}
	p := s.portrait(t, c.ends)
	if c.after != nil {
		c.after(s)
		p.Notes = s.notes
	}
	return p
}
