package cluster_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/cluster"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

// A Pod that appears between two lists of Pods may be on neither. The snapshot has the version of the older one: by the newer one
// the Pod would look as if it were gone, and a Job that could adopt it would run it a second time.
func TestASnapshotIsAsOldAsItsOldestList(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("picky", clustertest.Picky("batch"))
	client, seen := clustertest.Client(t)
	between := uint64(0)
	seen.Inject(func(q *http.Request) (*http.Response, error) {
		if last := q.URL.Query().Get("labelSelector") == cluster.MarkedPods; between == 0 && last && strings.HasSuffix(q.URL.Path, "/pods") {
			between = events.Version(w.ForeignPod("between", map[string]string{"app": "batch"}).ResourceVersion)
		}
		return nil, nil
	})
	of := cluster.IdentityOf(j)
	lists, err := cluster.Lister{Client: client, Namespace: key.Namespace, Claim: events.Claim{ManagedBy: v1alpha1.DefaultManagedBy}}.List(t.Context(), cluster.WantJobs(func(one cluster.Identity) bool { return one == of }))
	if err != nil {
		t.Fatal(err)
	}
	r := lists.JobListed("test", of)
	if between == 0 || len(r.Pods) > 0 || r.Version >= between {
		t.Errorf("the snapshot of version %d has %d Pods; one appeared at %d", r.Version, len(r.Pods), between)
	}
}
