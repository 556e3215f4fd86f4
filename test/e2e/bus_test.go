package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// Messages that cannot be decoded are quarantined and reported; the facts of the same Job and of others flow on.
func TestUnreadableMessagesAreQuarantinedAndTheRestFlowsOn(t *testing.T) {
	s := shared(t)
	p, ledger := s.Space(t), harness.NewLedger(t)
	wire := s.Tap(t)
	const completions = 20
	j := p.Apply(harness.Shell("beset", ledger.Script("0.5", ""), harness.Size(completions, 4, 0)))
	p.Await("beset", time.Minute, "to run", func(j *batchv1.Job) bool { return j.Status.Active+j.Status.Succeeded > 0 })
	stranger := uuid.NewUUID()
	before := s.Reconcilers[0].Printed()
	for i, garbage := range []string{"no JSON at all", `{"specversion":"1.0","type":"made.up"}`, ""} {
		for _, uid := range []types.UID{j.UID, stranger} {
			wire.Publish(t, fmt.Sprintf("facts.%s.job.%s.%s.Unreadable%d", events.Token(harness.ClusterName), events.Token(p.Namespace), events.Token(string(uid)), i), []byte(garbage))
		}
	}
	b, err := bus.Connect(t.Context(), bus.Config{URL: s.NATS.URL, Cluster: harness.ClusterName})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	harness.Until(t, time.Minute, "six messages to be quarantined", func(ctx context.Context) error {
		aside, err := b.Quarantined(ctx)
		if err != nil {
			return err
		}
		n := 0
		for _, q := range aside {
			if strings.Contains(q.Subject, string(j.UID)) || strings.Contains(q.Subject, string(stranger)) {
				n++
				if q.Reason == "" || q.Stream == "" || q.Sequence == 0 {
					return harness.Stop(fmt.Errorf("%s was quarantined without what an operator needs to examine it: %+v", q.Subject, q))
				}
			}
		}
		if n != 6 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	harness.Until(t, time.Minute, "the reconciler to log them", func(context.Context) error {
		log := strings.TrimPrefix(s.Reconcilers[0].Printed(), before)
		n := strings.Count(log, `level=ERROR msg="message set aside"`)
		if n != 6 || !hasAll(log, []string{string(j.UID) + ".Unreadable2", string(stranger) + ".Unreadable0", "not a structured CloudEvent"}) {
			return fmt.Errorf("its log has %d messages:\n%s", n, harness.Tail(log, 20))
		}
		return nil
	})
	end := p.AwaitEnd("beset", batchv1.JobComplete, time.Minute)
	p.Apply(harness.Shell("later", "true", harness.Size(1, 1, 0)))
	p.AwaitEnd("later", batchv1.JobComplete, time.Minute)
	if sum := ledger.Read(t); sum.Succeeded != completions || end.Status.Succeeded != completions || end.Status.Failed != 0 {
		t.Errorf("%d Pods have succeeded: %s", sum.Succeeded, harness.Brief(end.Status))
	}
}

// Secrets of a Pod never travel: neither in what the streams store nor in anything that passed while the Job ran, failed, was
// refused and was deleted.
func TestSecretsOfAPodAppearNowhereOnTheBus(t *testing.T) {
	t.Parallel()
	s := own(t, harness.Config{}) // with few messages, every one can be read
	wire := s.Tap(t)
	const secret = "hunter2-e2e-never-on-the-bus"
	hide := func(j *batchv1.Job) *batchv1.Job {
		c := &j.Spec.Template.Spec.Containers[0]
		c.Env = append(c.Env, corev1.EnvVar{Name: "PASSWORD", Value: secret})
		c.Args = []string{secret}
		c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
		j.Spec.Template.Annotations = map[string]string{"example.com/password": secret}
		j.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: `{"password":"` + secret + `"}`}
		return j
	}
	p := s.Space(t)
	p.Apply(hide(harness.Shell("good", `echo "$PASSWORD"`, harness.Size(5, 5, 0))))
	p.Apply(hide(harness.Shell("bad", `echo "$PASSWORD" >&2; exit 1`, harness.Size(2, 2, 0))))
	p.Apply(hide(harness.Shell("deleted", `sleep 600`, harness.Size(2, 2, 0))))
	p.AwaitEnd("good", batchv1.JobComplete, time.Minute)
	p.AwaitEnd("bad", batchv1.JobFailed, time.Minute)
	refused := s.Space(t)
	setLimit(t, refused)
	refused.Apply(hide(harness.Shell("refused", "true", harness.Size(1, 1, 0), requestMuch)))
	refused.Await("refused", time.Minute, "to be refused", func(j *batchv1.Job) bool { return harness.Is(j, v1alpha1.RefusedCondition) })
	p.Delete("deleted")
	harness.Until(t, time.Minute, "the deleted Job's Pods to be gone", func(context.Context) error {
		if n := len(p.Pods("deleted")); n > 0 {
			return fmt.Errorf("%d are left", n)
		}
		return nil
	})
	pod := p.Pods("good")[0]
	if text := pod.String(); strings.Count(text, secret) < 3 {
		t.Fatalf("the Pod has the secret fewer than three times: this test would prove nothing: %s", text)
	}
	wire.Publish(t, "facts."+harness.ClusterName+".job.e2e."+string(uuid.NewUUID())+".Unreadable", []byte("for the quarantine"))

	stored := wire.Stored(t)
	found := map[string]int{}
	for _, m := range append(stored, wire.Seen()...) {
		found[m.Where]++
		text := m.Bytes()
		for _, form := range forms(secret) {
			if bytes.Contains(text, form) {
				t.Errorf("%s, subject %s: %q", m.Where, m.Subject, text)
			}
		}
	}
	t.Logf("read %v messages", found)
	if err := readEverything(found, append(stored, wire.Seen()...)); err != nil {
		t.Error(err)
	}
}

// readEverything ensures that the search has covered all messages: the names of the Jobs must be everywhere.
func readEverything(found map[string]int, messages []harness.Message) error {
	for _, where := range []string{"wire", "jobstream_e2e_facts", "KV_jobstream_e2e_state_job", "jobstream_e2e_timers"} {
		if found[where] == 0 {
			return fmt.Errorf("nothing was read in %s, but in %v", where, found)
		}
	}
	for _, where := range []string{"wire", "jobstream_e2e_facts", "KV_jobstream_e2e_state_job"} {
		named := 0
		for _, m := range messages {
			if m.Where == where && bytes.Contains(m.Data, []byte("good")) {
				named++
			}
		}
		if named == 0 {
			return errors.New("no message in " + where + " names the Job: is it in an encoding that this search does not know?")
		}
	}
	return nil
}

// forms returns the ways in which a text may appear in a message: as it is, and in base64 at each of three alignments, without
// the characters at both ends that depend on the neighbours.
func forms(text string) [][]byte {
	out := [][]byte{[]byte(text)}
	for pad := range 3 {
		e := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", pad) + text))
		out = append(out, []byte(e[4:len(e)-4]))
	}
	return out
}
