package apiserver

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jobstream/jobstream/internal/finding"
)

func TestVersionWarning(t *testing.T) {
	for _, c := range []struct{ major, minor, want string }{
		{"1", "36", ""},
		{"1", "35+", ""},
		{"1", "34", "older than Kubernetes 1.35"},
		{"1", "31", "older than Kubernetes 1.32"},
		{"", "", "unknown"},
		{"2", "0", "unknown"},
	} {
		if got := VersionWarning(version.Info{Major: c.major, Minor: c.minor}); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s.%s: %q", c.major, c.minor, got)
		}
	}
}

// An outdated definition is served, and drops unknown fields from every manifest.
func TestInspectionFindsAnOldDefinition(t *testing.T) {
	known, err := deployedFields()
	if err != nil || len(known) < 20 {
		t.Fatalf("%q, %v", known, err)
	}
	fields := map[string]map[string]any{"spec": {}, "status": {}}
	for _, f := range known {
		if part, name, _ := strings.Cut(f, "."); f != "spec.catchUp" && f != "status.recent" {
			fields[part][name] = map[string]any{}
		}
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var answer any
		switch r.URL.Path {
		case "/apis/jobstream.dev/v1alpha1":
			answer = metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: "jobstream.dev/v1alpha1",
				APIResources: []metav1.APIResource{{Name: "scheduledjobs", Kind: "ScheduledJob"}}}
		case "/openapi/v3/apis/jobstream.dev/v1alpha1":
			part := func(name string) any { return map[string]any{"properties": fields[name]} }
			answer = map[string]any{"components": map[string]any{"schemas": map[string]any{
				"dev.jobstream.v1alpha1.ScheduledJobList": map[string]any{},
				"dev.jobstream.v1alpha1.ScheduledJob":     map[string]any{"properties": map[string]any{"spec": part("spec"), "status": part("status")}},
			}}}
		default:
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer s.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	f := Inspection{Client: client}.Definition(t.Context())
	if f.Level != finding.Fail || !strings.HasSuffix(f.Found, "it does not know spec.catchUp, status.recent") || !strings.Contains(f.Advice, "kubectl apply") {
		t.Errorf("%+v", f)
	}
}

// The Date has whole seconds: a difference that rounding may explain is no skew.
func TestSkew(t *testing.T) {
	sent := time.Date(2026, 1, 2, 3, 4, 5, 900e6, time.UTC)
	for _, tt := range []struct {
		date string
		came time.Duration
		want finding.Level
	}{
		{"Fri, 02 Jan 2026 03:04:05 GMT", 10 * time.Millisecond, finding.OK},
		{"Fri, 02 Jan 2026 03:04:06 GMT", 10 * time.Millisecond, finding.OK},
		{"Fri, 02 Jan 2026 03:04:03 GMT", 10 * time.Millisecond, finding.OK}, // 1.9 s at least: below the limit
		{"Fri, 02 Jan 2026 03:04:02 GMT", 10 * time.Millisecond, finding.Warn},
		{"Fri, 02 Jan 2026 03:04:10 GMT", 10 * time.Millisecond, finding.Warn},
		{"Fri, 02 Jan 2026 03:04:10 GMT", 10 * time.Second, finding.OK}, // the response was too slow to tell
		{"Fri, 02 Jan 2026 03:05:10 GMT", 10 * time.Millisecond, finding.Fail},
		{"Fri, 02 Jan 2026 02:04:05 GMT", 10 * time.Millisecond, finding.Fail},
		{"", 0, finding.OK},
	} {
		if f := skew(tt.date, sent, sent.Add(tt.came)); f.Level != tt.want {
			t.Errorf("%s after %v: %+v, want %v", tt.date, tt.came, f, tt.want)
		}
	}
}
