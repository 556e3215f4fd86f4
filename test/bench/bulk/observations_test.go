package bulk

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// An object counts once, however often it comes.
func TestObservations(t *testing.T) {
	o := &Observations{}
	if o.Count() != 0 || len(o.UIDs()) != 0 {
		t.Error("there is something before the first object")
	}
	for _, uid := range []types.UID{"a", "a", "b"} {
		o.Add(&metav1.ObjectMeta{UID: uid})
	}
	if o.Count() != 2 || len(o.UIDs()) != 2 {
		t.Errorf("%d objects, %v, want a and b", o.Count(), o.UIDs())
	}
}
