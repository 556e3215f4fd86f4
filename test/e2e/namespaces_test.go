package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// Limited to two namespaces, as service accounts with the roles of deploy/namespaced there and no others, the programs run what
// is in these, do not touch a Job of jobstream's in a third, although facts about it are on the bus, and have no request
// refused. A missing namespace delays nothing.
func TestNamespacesOnly(t *testing.T) {
	t.Parallel()
	s := own(t, harness.Config{})
	shop, lab, other := s.Space(t), s.Space(t), s.Space(t)
	for _, p := range append(s.Triggers, s.Reconcilers...) {
		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	// While the trigger is not limited, it publishes facts about the Job that must not be touched.
	untouched := other.Apply(harness.Shell("pi", "exit 0"))
	if err := s.Triggers[0].Start(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(harness.Ready(t.Context(), s.Triggers[0]), s.Triggers[0].Stop()); err != nil {
		t.Fatal(err)
	}
	g := s.Guide(t, "docs/uninstall.md", "SHOP="+shop.Namespace, "LAB="+lab.Namespace)
	out, err := g.Run(t.Context(), `kubectl apply -f deploy/namespace.yaml
for namespace in $SHOP $LAB; do
  mkdir $namespace
  printf 'namespace: %s\nresources: [../deploy/namespaced/roles]\n' $namespace >$namespace/kustomization.yaml
  kubectl apply -k $namespace
done
kubectl apply -k deploy/namespaced/programs`)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	namespaces := "--namespaces=" + shop.Namespace + "," + lab.Namespace
	limited := func(p *harness.Process, account string, flags ...string) {
		t.Helper()
		for n, arg := range p.Args {
			if strings.HasPrefix(arg, "--kubeconfig=") {
				p.Args[n] = "--kubeconfig=" + kubeconfigAs(t, s, account)
			}
		}
		p.Args = append(p.Args, flags...)
	}
	limited(s.Triggers[0], "jobstream-trigger", namespaces, "--namespaces=nowhere")
	limited(s.Reconcilers[0], "jobstream-reconciler", namespaces)
	before := len(s.Reconcilers[0].Printed())
	startAll(t, s)

	for _, p := range []*harness.Space{shop, lab} {
		ledger := harness.NewLedger(t)
		p.Apply(harness.Shell("pi", ledger.Script("0", ""), harness.Size(4, 2, 0), harness.Indexed))
		end := p.AwaitEnd("pi", batchv1.JobComplete, time.Minute)
		if sum := ledger.Read(t); sum.Succeeded != 4 || end.Status.Succeeded != 4 {
			t.Errorf("%+v: %s", sum, harness.Brief(end.Status))
		}
		p.Schedule(harness.Every("tick", "* * * * * *", "exit 0"))
		p.AwaitSchedule("tick", time.Minute, "to have run", func(j *v1alpha1.ScheduledJob) bool { return j.Status.Successful > 0 })
	}
	harness.Holds(t, 2*time.Second, "the Job in another namespace to be left alone", func(context.Context) error {
		if j := other.Job("pi"); j.ResourceVersion != untouched.ResourceVersion || len(other.Pods("pi")) > 0 {
			return fmt.Errorf("%s", harness.Brief(j.Status))
		}
		return nil
	})
	if said := s.Triggers[0].Printed(); !strings.Contains(said, "namespace=nowhere") || !strings.Contains(said, "is there such a namespace, and are jobstream's roles bound in it") {
		t.Error("the trigger does not log that it may not list the namespace nowhere")
	}
	for line := range strings.Lines(s.Triggers[0].Printed() + s.Reconcilers[0].Printed()[before:]) {
		if strings.Contains(line, "orbidden") && !strings.Contains(line, "namespace=nowhere") {
			t.Errorf("refused: %s", line)
		}
	}
	as := "--kubeconfig=" + kubeconfigAs(t, s, "jobstream-reconciler")
	harness.Until(t, timeout, "the doctor to find no failure", func(context.Context) error {
		if code, out := reconciler(t, s, "doctor", as, namespaces); code != 0 || !hasAll(out, []string{"40 verbs asked about, all are allowed"}) {
			return fmt.Errorf("exit code %d:\n%s", code, out)
		}
		return nil
	})
	if code, out := reconciler(t, s, "doctor", as, namespaces, "--namespaces=nowhere"); code != 1 || !hasAll(out, []string{"create pods in nowhere", "deploy/namespaced"}) {
		t.Errorf("doctor: exit code %d:\n%s", code, out)
	}
	if code, out := reconciler(t, s, "drain", as, namespaces); code != 1 || !hasAll(out, []string{"2 ScheduledJobs at work"}) || strings.Contains(out, other.Namespace) {
		t.Errorf("drain: exit code %d:\n%s", code, out)
	}
}

// kubeconfigAs returns a kubeconfig of a service account in the namespace jobstream.
func kubeconfigAs(t *testing.T, s *harness.System, account string) string {
	t.Helper()
	file, err := s.KubeconfigAs(t.Context(), account)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
