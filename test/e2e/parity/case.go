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
	// File is the manifest: of testdata, or of the Kubernetes documentation if Documented is set.
	File       string
	Documented bool
	// Name distinguishes cases of one manifest; if it is empty, File does.
	Name string
	// Shows is the subject of the case, in a few words.
	Shows string

	// needs are commands that must work on this machine.
	needs [][]string
	// prepare is run before the Job exists, and may change it.
	prepare func(s *Side, j *batchv1.Job)
	// create creates the Job if that takes more than one request. It sets s.JobName.
	create func(s *Side, j *batchv1.Job)
	// steps act on the Job while it runs.
	steps func(s *Side)
	// ends is the condition with which it ends; empty if the steps have awaited its end, and the Job is gone.
	ends batchv1.JobConditionType
	// after is run after the portrait.
	after func(s *Side)
	// within is how long it may take, a minute if it is 0.
	within time.Duration
}

// Title is the case's name.
func (c Case) Title() string {
	if c.Name != "" {
		return c.Name
	}
	return c.File
}

// Run runs the case under both controllers at once and compares. seen records the differences on record that have shown.
func (c Case) Run(t *testing.T, s *harness.System, seen *Seen) {
	c.skipUnlessPossible(t)
	var builtIn, jobstream Portrait
	t.Run("under", func(t *testing.T) {
		t.Run("built-in", func(t *testing.T) { t.Parallel(); builtIn = c.portray(t, s, false) })
		t.Run("jobstream", func(t *testing.T) { t.Parallel(); jobstream = c.portray(t, s, true) })
	})
	if t.Failed() {
		return // one of them has no portrait, and has logged why
	}
	seen.take(&builtIn, &jobstream)
	if diff := compare(builtIn, jobstream); diff != "" {
		t.Errorf("differences between the built-in controller (-) and jobstream (+):\n%s", diff)
	}
	t.Logf("both: %s", builtIn.brief())
}

// skipUnlessPossible skips a case that this checkout or this machine cannot run.
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

// portray runs the Job under one controller, in a namespace of its own, and takes its portrait at the end.
func (c Case) portray(t *testing.T, system *harness.System, jobstream bool) Portrait {
	s := &Side{Space: system.Space(t), Dir: t.TempDir(), Managed: jobstream, timeout: c.within}
	if s.timeout == 0 {
		s.timeout = time.Minute
	}
	j := c.read(t, s.Dir)
	s.JobName = j.Name
	if jobstream {
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
