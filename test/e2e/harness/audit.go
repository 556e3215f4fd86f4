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

// Request is a request from the audit log: a write of a Job's status ("update" or "patch" of "jobs/status"), the creation or
// change of a Pod ("create" or "patch" of "pods"), or, if Config.Deployed is set, any request of the programs.
type Request struct {
	// User is who made the request, and Allowed why the API server allowed it: it names the binding and the role.
	User, Allowed string
	// Group is that of the Resource, "" for the core group. Resource is "" for requests such as /version.
	Verb, Group, Resource, Namespace, Name string
	// Agent is the first word of the client's User-Agent, and Controller the last: the name of the controller for
	// kube-controller-manager.
	Agent, Controller string
	Code              int
	// Message is why the request was refused, "" if it was not.
	Message string
	At      time.Time
}

// Requests reads the audit log and returns the requests in the namespace, in the order of their answers.
func (s *System) Requests(namespace string) ([]Request, error) {
	return s.audited(func(r Request) bool { return r.Namespace == namespace })
}

// RequestsBy returns the requests of a service account of the namespace jobstream, in all namespaces. A watch appears twice:
// when it is answered, and when it ends.
func (s *System) RequestsBy(account string) ([]Request, error) {
	return s.audited(func(r Request) bool { return r.User == username(account) })
}

func (s *System) audited(wanted func(Request) bool) ([]Request, error) {
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
			User            struct{ Username string }
			ObjectRef       struct{ APIGroup, Resource, Subresource, Namespace, Name string }
			Annotations     map[string]string
			ResponseStatus  struct {
				Code    int
				Message string
			}
			StageTimestamp time.Time
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // the last line may be incomplete
		}
		r := Request{User: e.User.Username, Allowed: e.Annotations["authorization.k8s.io/reason"], Verb: e.Verb, Group: e.ObjectRef.APIGroup,
			Resource: e.ObjectRef.Resource, Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name, Code: e.ResponseStatus.Code, Message: e.ResponseStatus.Message, At: e.StageTimestamp}
		if e.ObjectRef.Subresource != "" {
			r.Resource += "/" + e.ObjectRef.Subresource
		}
		r.Agent, _, _ = strings.Cut(e.UserAgent, "/")
		r.Controller = e.UserAgent[strings.LastIndex(e.UserAgent, "/")+1:]
		if wanted(r) {
			out = append(out, r)
		}
	}
	return out, lines.Err()
}

// Count returns how many requests satisfy is.
func Count(requests []Request, is func(Request) bool) int {
	n := 0
	for _, r := range requests {
		if is(r) {
			n++
		}
	}
	return n
}

// StatusWrite reports whether the request wrote a Job's status.
func StatusWrite(r Request) bool { return r.Resource == "jobs/status" && r.Code == http.StatusOK }

// PodCreation reports whether the request tried to create a Pod, with any outcome.
func PodCreation(r Request) bool { return r.Verb == "create" && r.Resource == "pods" }

// BuiltInPatch reports whether the built-in Job controller has patched a Pod: to remove the finalizer, if no Job is its own.
func BuiltInPatch(r Request) bool {
	return r.Verb == "patch" && r.Resource == "pods" && r.Controller == "job-controller" && r.Code == http.StatusOK
}

// OurPatch reports whether a reconciler has patched a Pod: to remove the finalizer, as a rule.
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
