package clustertest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/jobstream/jobstream/internal/cluster"
)

// Requests observes every request of the code under test, and may answer in the server's stead.
type Requests struct {
	mu    sync.Mutex
	Seen  []string
	fault func(*http.Request) (*http.Response, error)
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (r *Requests) RoundTrip(q *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.Seen = append(r.Seen, q.Method+" "+q.URL.Path)
	fault := r.fault
	r.mu.Unlock()
	if fault != nil {
		if resp, err := fault(q); resp != nil || err != nil {
			return resp, err
		}
	}
	return r.next.RoundTrip(q)
}

// Count returns how often a request was sent, such as "GET /version".
func (r *Requests) Count(what string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.Seen {
		if s == what {
			n++
		}
	}
	return n
}

// Inject makes the function answer requests: (nil, nil) passes a request on. nil passes all on.
func (r *Requests) Inject(fault func(*http.Request) (*http.Response, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = fault
}

// Fail answers every matching request with 503.
func (r *Requests) Fail(meant func(*http.Request) bool) {
	r.Inject(func(q *http.Request) (*http.Response, error) {
		if !meant(q) {
			return nil, nil
		}
		return Answer(q, http.StatusServiceUnavailable, EtcdAway), nil
	})
}

// EtcdAway is the answer of an API server that has lost etcd.
var EtcdAway = metav1.Status{Status: "Failure", Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable, Message: "etcd is away"}

// Answer returns an API server's answer in JSON.
func Answer(q *http.Request, code int, status metav1.Status) *http.Response {
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	body, err := json.Marshal(status)
	if err != nil {
		panic(err)
	}
	return &http.Response{StatusCode: code, Request: q, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(body))}
}

// IsWatch reports whether the request is a watch of the resource, and not a list.
func IsWatch(q *http.Request, resource string) bool {
	return q.URL.Query().Get("watch") != "" && strings.HasSuffix(q.URL.Path, "/"+resource)
}

// Client makes a client through NewClient whose requests are observed.
func Client(t *testing.T) (kubernetes.Interface, *Requests) {
	t.Helper()
	client, _, seen := Clients(t)
	return client, seen
}

// Clients is Client with a second client, for ScheduledJobs.
func Clients(t *testing.T) (kubernetes.Interface, *cluster.ScheduledJobs, *Requests) {
	t.Helper()
	_, config, err := cluster.NewClient(cluster.ClientConfig{Kubeconfig: ControlPlane(t).Kubeconfig()})
	if err != nil {
		t.Fatal(err)
	}
	seen := &Requests{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { seen.next = next; return seen })
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	schedules, err := cluster.NewScheduledJobs(config)
	if err != nil {
		t.Fatal(err)
	}
	return client, schedules, seen
}
