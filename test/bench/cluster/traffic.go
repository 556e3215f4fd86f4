package main

import (
	"maps"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// traffic counts the requests of jobstream's programs on their way to the API server. The API server's own metric counts those of all
// clients together, and here others send the same ones: kube-controller-manager reads and deletes Jobs after their time to live, and
// the garbage collector deletes their Pods. So a proxy looks at each request of jobstream and passes it on as it is. It works in the
// process of the benchmark, so none of the programs that are measured pays for it.
type traffic struct {
	mu     sync.Mutex
	counts map[string]map[string]float64 // by program and request, such as "PATCH jobs/status"
}

// see counts a request. It never answers one.
func (t *traffic) see(_ http.ResponseWriter, r *http.Request) (answered bool) {
	program, what := programOf(r.UserAgent()), nameOf(r)
	if program == "" || what == "" {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts[program] == nil {
		t.counts[program] = map[string]float64{}
	}
	t.counts[program][what]++
	return false
}

// now returns a copy of the counts.
func (t *traffic) now() map[string]map[string]float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[string]map[string]float64{}
	for _, program := range own {
		if all[program] = maps.Clone(t.counts[program]); all[program] == nil {
			all[program] = map[string]float64{}
		}
	}
	return all
}

// programOf is the one of jobstream's programs that has sent a request.
func programOf(userAgent string) string {
	for _, program := range own {
		if strings.Contains(userAgent, program) {
			return program
		}
	}
	return ""
}

// paths reads requests as the API server does.
var paths = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// verbs are those of the API server's metric where they differ from the names in its permissions.
var verbs = map[string]string{"create": "POST", "update": "PUT"}

// nameOf is a request's name in the API server's metric; "" if it is about no object.
func nameOf(r *http.Request) string {
	info, err := paths.NewRequestInfo(r)
	if err != nil || !info.IsResourceRequest {
		return ""
	}
	verb, known := verbs[info.Verb]
	if !known {
		verb = strings.ToUpper(info.Verb)
	}
	if info.Subresource != "" {
		return verb + " " + info.Resource + "/" + info.Subresource
	}
	return verb + " " + info.Resource
}

// counted reports whether the request is counted: not so watches, which the API server counts at their end, minutes after it.
func counted(request string) bool { return !strings.HasPrefix(request, "WATCH ") }
