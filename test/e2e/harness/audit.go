package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// Request is what the audit log tells of one request: a write of a Job's status ("update" or "patch" of "jobs/status"), or
// the creation or change of a Pod ("create" or "patch" of "pods").
type Request struct {
	Verb, Resource, Namespace, Name string
	// Agent is the first word of the client's User-Agent, and Controller the last: of kube-controller-manager, which of them it
	// is.
	Agent, Controller string
	Code              int
	At                time.Time
}

// Requests reads the audit log and returns what concerns the namespace, in the order of the answers.
func (s *System) Requests(namespace string) ([]Request, error) {
	file, err := os.Open(s.ControlPlane.AuditLog())
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var out []Request
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Verb, UserAgent string
			ObjectRef       struct{ Resource, Subresource, Namespace, Name string }
			ResponseStatus  struct{ Code int }
			StageTimestamp  time.Time
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // the last line may not be whole yet
		}
		if e.ObjectRef.Namespace != namespace {
			continue
		}
		r := Request{Verb: e.Verb, Resource: e.ObjectRef.Resource, Namespace: namespace, Name: e.ObjectRef.Name, Code: e.ResponseStatus.Code, At: e.StageTimestamp}
		if e.ObjectRef.Subresource != "" {
			r.Resource += "/" + e.ObjectRef.Subresource
		}
		r.Agent, _, _ = strings.Cut(e.UserAgent, "/")
		r.Controller = e.UserAgent[strings.LastIndex(e.UserAgent, "/")+1:]
		out = append(out, r)
	}
	return out, lines.Err()
}

// Count is how many requests are as the test asks.
func Count(requests []Request, is func(Request) bool) int {
	n := 0
	for _, r := range requests {
		if is(r) {
			n++
		}
	}
	return n
}

// StatusWrite says that the request wrote a Job's status.
func StatusWrite(r Request) bool { return r.Resource == "jobs/status" && r.Code == http.StatusOK }

// PodCreation says that the request asked for a Pod, whatever the answer was.
func PodCreation(r Request) bool { return r.Verb == "create" && r.Resource == "pods" }

// BuiltInRelease says that Kubernetes' own Job controller has patched a Pod: where no Job is its own, to take the finalizer off.
func BuiltInRelease(r Request) bool {
	return r.Verb == "patch" && r.Resource == "pods" && r.Controller == "job-controller" && r.Code == http.StatusOK
}

// OurPatch says that a reconciler has patched a Pod: to take the finalizer off, as a rule.
func OurPatch(r Request) bool {
	return r.Verb == "patch" && r.Resource == "pods" && strings.HasPrefix(r.Agent, "jobstream") && r.Code == http.StatusOK
}

// get reads a small page.
func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	return string(body), err
}
