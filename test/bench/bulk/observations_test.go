package bulk

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// An object counts once, from the first time on; a second one of the same owner is one too many.
func TestObservations(t *testing.T) {
	of := func(uid, owner types.UID) *metav1.ObjectMeta {
		return &metav1.ObjectMeta{UID: uid, OwnerReferences: []metav1.OwnerReference{{UID: owner, Controller: ptr.To(true)}}}
	}
	began, o := time.Now(), &Observations{}
	if o.Count() != 0 || o.TooMany() != 0 || len(o.Since(began)) != 0 {
		t.Error("there is something before the first object")
	}
	for _, object := range []*metav1.ObjectMeta{of("a", "x"), of("a", "x"), of("b", "y"), of("c", "y"), {UID: "d"}} {
		o.Add(object)
	}
	if o.Count() != 4 || len(o.UIDs()) != 4 || o.TooMany() != 1 {
		t.Errorf("%d objects, %v, %d too many, want 4 and 1", o.Count(), o.UIDs(), o.TooMany())
	}
	for _, late := range o.Since(began) {
		if late < 0 {
			t.Errorf("observed %v after the beginning", late)
		}
	}
}
