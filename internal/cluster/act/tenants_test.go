package act

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

// TestATenantThatHangsKeepsNoRequestFromOthers: effects that a webhook delays for 15 seconds in one namespace leave requests for
// those of another.
func TestATenantThatHangsKeepsNoRequestFromOthers(t *testing.T) {
	const calls, share = 100, 8 // of 16
	hanging := make(chan struct{}, calls)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/namespaces/greedy/") {
			hanging <- struct{}{}
			<-r.Context().Done()
			return
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(Config{Client: client, Concurrency: 16, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	find := func(ctx context.Context, namespace string, i int) error {
		key := events.Key{Function: "job", Namespace: namespace, UID: types.UID(fmt.Sprint(namespace, i))}
		_, err := a.Act(ctx, key, effect.FindPod{Name: "pod", Serial: i})
		return err
	}
	greedy, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() { _ = find(greedy, "greedy", i) })
	}
	defer all.Wait()
	defer stop()
	quick, end := context.WithTimeout(t.Context(), clustertest.Timeout)
	defer end()
	for n := range share {
		select {
		case <-hanging:
		case <-quick.Done():
			t.Fatalf("%d requests of one namespace are under way, want %d of 16", n, share)
		}
	}
	if err := find(quick, "quiet", 0); err != nil {
		t.Errorf("beside a namespace whose requests hang: %v", err)
	}
	if n := len(hanging); n > 0 {
		t.Errorf("%d requests of one namespace are under way, want %d of 16", share+n, share)
	}
}

// TestTheJobOfAScheduleGoesAhead: the time of a schedule has come, and what is under way in its namespace can wait longer.
func TestTheJobOfAScheduleGoesAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		arrived, release := make(chan string, 10), make(chan struct{})
		config := &rest.Config{QPS: -1, Transport: answers(func(r *http.Request) *http.Response {
			arrived <- r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
			<-release
			return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody, Request: r}
		})}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		schedules, err := cluster.NewScheduledJobs(config)
		if err != nil {
			t.Fatal(err)
		}
		a, err := New(Config{Client: client, ScheduledJobs: schedules, Concurrency: 1})
		if err != nil {
			t.Fatal(err)
		}
		act := func(function string, e effect.Effect) {
			go func() { _, _ = a.Act(t.Context(), events.Key{Function: function, Namespace: "shop", UID: "1"}, e) }()
			synctest.Wait()
		}
		act("job", effect.FindPod{Name: "first"})
		act("job", effect.FindPod{Name: "second"})
		act("scheduledjob", effect.CreateJob{ScheduledJob: "due"})
		close(release)
		if got := []string{<-arrived, <-arrived, <-arrived}; strings.Join(got, " ") != "first due second" {
			t.Errorf("the requests went in the order %q", got)
		}
	})
}

// answers is an API server without a network.
type answers func(*http.Request) *http.Response

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) { return a(r), nil }
