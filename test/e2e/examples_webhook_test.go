package e2e

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// receiver is an HTTPS server that events are posted to. Its answer depends on the name of the Job and on the number of tries.
type receiver struct {
	*httptest.Server
	certificate string

	mu    sync.Mutex
	tries map[string][]time.Time // the times of requests, by the name of the Job
	taken map[string]int         // how often it has answered 200, by source and id
	wrong []string
}

// answers are the status codes, one for each try; after the last it is 200. 0 never answers.
var answers = map[string][]int{
	"broken":   {500, 503},
	"busy":     {429},
	"hanging":  {0},
	"refused":  {400, 400, 400},
	"moved":    {302, 302, 302},
	"slow":     {408},
	"hopeless": {500, 500, 500, 500, 500, 500, 500, 500, 500, 500},
	"killed":   {0, 0, 0, 0, 0, 0}, // the program is killed while it waits for these
}

func receive(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{tries: map[string][]time.Time{}, taken: map[string]int{}}
	r.Server = httptest.NewTLSServer(http.HandlerFunc(r.take))
	t.Cleanup(r.Close)
	r.certificate = filepath.Join(t.TempDir(), "receiver.pem")
	if err := os.WriteFile(r.certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *receiver) take(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	var e struct{ SpecVersion, Source, ID, Subject string }
	if err == nil {
		err = json.Unmarshal(body, &e)
	}
	if kind := q.Header.Get("Content-Type"); err != nil || q.Method != http.MethodPost || q.URL.Path != "/events" || q.Header.Get("Authorization") != "Bearer s3cret" ||
		!strings.HasPrefix(kind, "application/cloudevents+json") || e.SpecVersion != "1.0" || e.ID == "" {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.wrong = append(r.wrong, fmt.Sprintf("%s %s %v %v: %s", q.Method, q.URL, q.Header, err, body))
		return
	}
	switch code := r.answer(e.Subject, e.Source+" "+e.ID); code {
	case 0:
		<-q.Context().Done()
	case 429:
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(code)
	case 302:
		w.Header().Set("Location", r.URL+"/elsewhere")
		w.WriteHeader(code)
	default:
		w.WriteHeader(code)
	}
}

func (r *receiver) answer(job, id string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.tries[job])
	r.tries[job] = append(r.tries[job], time.Now())
	if n < len(answers[job]) {
		return answers[job][n]
	}
	r.taken[id]++
	return http.StatusOK
}

func (r *receiver) asked(job string) []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.tries[job])
}

// The webhook forwarder delivers every event to a receiver that fails, is busy, hangs and redirects, although the forwarder is
// killed. What the receiver refuses, and what fails too often, is set aside by its name, and delays nothing else.
func webhook(t *testing.T, s *harness.System) {
	p, r := s.Space(t), receive(t)
	truth := watchTruth(p)
	c := made(p, "webhook", "job.finish.>", func(c *jetstream.ConsumerConfig) { c.AckWait = 4 * time.Second })
	e := example(p, "webhook", built(t, ".", "./examples/webhook"), nil, []string{"WEBHOOK_URL=" + r.URL + "/events", "WEBHOOK_TIMEOUT=2s",
		"WEBHOOK_TRIES=6", "WEBHOOK_AUTHORIZATION=Bearer s3cret", "SSL_CERT_FILE=" + r.certificate})
	begin(p, e)
	jobs := []string{"killed"}
	apply := func(job string) { p.Apply(quick(job)); jobs = append(jobs, job) }
	for job := range answers {
		if job != "killed" {
			apply(job)
		}
	}
	for i := range 20 {
		apply(fmt.Sprintf("plain-%d", i))
		if i%7 == 6 {
			p.AwaitEnd(fmt.Sprintf("plain-%d", i-3), batchv1.JobComplete, timeout)
			kill(p, e)
			begin(p, e)
		}
	}
	killedInRequest(p, r, e)
	for _, job := range jobs {
		p.AwaitEnd(job, batchv1.JobComplete, timeout)
	}
	harness.Until(t, timeout, "every event to be delivered or set aside", func(context.Context) error {
		text, err := os.ReadFile(e.LogFile)
		if err != nil {
			return err
		}
		ends, open := 0, []string{}
		for id, what := range truth.all() {
			job, end, _ := strings.Cut(what, " ")
			if end != "ends" {
				continue
			}
			ends++
			id = "/clusters/" + harness.ClusterName + "/namespaces/" + p.Namespace + "/jobs/" + job + " " + id
			aside := strings.Contains(string(text), "set aside event=\""+id+"\"")
			switch taken, never := r.has(id), slices.Contains([]string{"refused", "moved", "hopeless"}, job); {
			case taken && never, aside && !never:
				return harness.Stop(fmt.Errorf("%s: taken %v, set aside %v", job, taken, aside))
			case !taken && !aside:
				open = append(open, job)
			}
		}
		if ends < len(jobs) || len(open) > 0 {
			return fmt.Errorf("%d of %d Jobs have announced their end; neither taken nor set aside: %q", ends, len(jobs), open)
		}
		return nil
	})
	settled(p, c)
	r.check(t)
	tries := map[string]int{}
	for job := range answers {
		tries[job] = len(r.asked(job))
	}
	t.Logf("requests by Job: %v; %d Jobs in all", tries, len(jobs))
	// A try that a kill has interrupted is repeated: more are possible.
	for job, atLeast := range map[string]int{"broken": 3, "busy": 2, "hanging": 2, "slow": 2} {
		if tries[job] < atLeast {
			t.Fatalf("%s was tried %d times", job, tries[job])
		}
	}
	for _, job := range []string{"refused", "moved"} { // not repeated, unless a kill has interrupted the first try
		if tries[job] > 3 {
			t.Errorf("%s was tried %d times", job, tries[job])
		}
	}
	log, err := os.ReadFile(e.LogFile)
	if err != nil {
		t.Fatal(err)
	}
	gap := r.asked("busy")[1].Sub(r.asked("busy")[0])
	if read := strings.Contains(string(log), "the receiver answers 429"); read && gap < 3*time.Second { // a kill may have come before it read that
		t.Errorf("the receiver has asked for 3 s and got %v", gap)
	}
}

// killedInRequest kills the program while the receiver has its request and has not answered.
func killedInRequest(p *harness.Space, r *receiver, e *harness.Process) {
	p.Helper()
	p.Apply(quick("killed"))
	harness.Until(p, timeout, "the receiver to get a request", func(context.Context) error {
		if len(r.asked("killed")) == 0 {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	kill(p, e)
	r.mu.Lock()
	r.tries["killed"] = make([]time.Time, len(answers["killed"])) // from now on it answers
	r.mu.Unlock()
	begin(p, e)
}

// has reports whether the receiver has answered 200.
func (r *receiver) has(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken[id] > 0
}

// check fails the test for requests that are no CloudEvents.
func (r *receiver) check(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.wrong {
		t.Errorf("a request that is no CloudEvent: %s", w)
	}
}
