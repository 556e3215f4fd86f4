package hostile

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// converter is a conversion webhook of ScheduledJobs: the API server calls it for each object that is stored in another version
// than the one requested. Both versions have the same fields.
type converter struct {
	mode   atomic.Int32
	asked  atomic.Int32
	closed chan struct{}
}

// What a converter does.
const (
	answers500 int32 = iota
	hangs
	converts
)

// secondVersion is one that a newer jobstream might define.
const secondVersion = "v1"

// convert gives ScheduledJobs a second version, in which they are stored from now on, and a webhook that converts them once its
// mode is converts.
func convert(t *testing.T, s *harness.System) *converter {
	t.Helper()
	c := &converter{closed: make(chan struct{})}
	server := httptest.NewTLSServer(c)
	t.Cleanup(func() { close(c.closed); server.CloseClientConnections(); server.Close() })
	definitions := objects(t, s).Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	d, err := definitions.Get(t.Context(), "scheduledjobs.jobstream.dev", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	versions, _, err := unstructured.NestedSlice(d.Object, "spec", "versions")
	if err != nil || len(versions) != 1 {
		t.Fatalf("%d versions are defined: %v", len(versions), err)
	}
	first, _ := versions[0].(map[string]any)
	second := runtime.DeepCopyJSON(first)
	first["storage"], second["name"] = false, secondVersion
	webhook := map[string]any{"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{
		"url": server.URL, "caBundle": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}}
	spec, _ := d.Object["spec"].(map[string]any)
	spec["versions"], spec["conversion"] = []any{first, second}, map[string]any{"strategy": "Webhook", "webhook": webhook}
	if _, err := definitions.Update(t.Context(), d, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return c
}

// ServeHTTP answers the API server, or does not.
func (c *converter) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	c.asked.Add(1)
	var review struct {
		metav1.TypeMeta `json:",inline"`
		Request         *struct {
			UID     types.UID                   `json:"uid"`
			Version string                      `json:"desiredAPIVersion"`
			Objects []unstructured.Unstructured `json:"objects"`
		} `json:"request,omitempty"`
		Response map[string]any `json:"response,omitempty"`
	}
	if err := json.NewDecoder(in.Body).Decode(&review); err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	switch c.mode.Load() {
	case answers500:
		http.Error(out, "out of order", http.StatusInternalServerError)
		return
	case hangs:
		select {
		case <-in.Context().Done():
		case <-c.closed:
		}
		return
	}
	for i := range review.Request.Objects {
		review.Request.Objects[i].SetAPIVersion(review.Request.Version)
	}
	review.Response = map[string]any{"uid": review.Request.UID, "convertedObjects": review.Request.Objects, "result": map[string]any{"status": metav1.StatusSuccess}}
	review.Request = nil
	out.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(out).Encode(review) // fails if the API server has closed the connection, and then has no reader
}

// objects returns an administrator's client for kinds that client-go does not know.
func objects(t *testing.T, s *harness.System) dynamic.Interface {
	t.Helper()
	config := rest.CopyConfig(s.REST)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
