package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
)

// Identity tells a Job or a ScheduledJob from all others. Its UID alone would do if nobody lied: but whoever may write in one
// namespace may write the UID of another one's object into an owner reference or a label. So whatever an object says about its
// owner holds within its own namespace only.
type Identity struct {
	Namespace string
	UID       types.UID
}

// IdentityOf is that of the object.
func IdentityOf(o metav1.Object) Identity { return Identity{o.GetNamespace(), o.GetUID()} }

// IdentityOfKey is the identity of the object that the key is about.
func IdentityOfKey(key events.Key) Identity { return Identity{key.Namespace, key.UID} }

// Key is that of a function's memory of the object.
func (i Identity) Key(function string) events.Key {
	return events.Key{Function: function, Namespace: i.Namespace, UID: i.UID}
}
