package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
)

// Identity distinguishes a Job or a ScheduledJob from all others. Its UID alone would do if every user could be trusted. But a
// user who may write in one namespace can write the UID of another user's object into an owner reference or a label. So whatever
// an object declares about its owner is valid within its own namespace only.
type Identity struct {
	Namespace string
	UID       types.UID
}

// IdentityOf returns the identity of the object.
func IdentityOf(o metav1.Object) Identity { return Identity{o.GetNamespace(), o.GetUID()} }

// IdentityOfKey returns the identity of the key's object.
func IdentityOfKey(key events.Key) Identity { return Identity{key.Namespace, key.UID} }

// Key returns the key of a function's state of the object.
func (i Identity) Key(function string) events.Key {
	return events.Key{Function: function, Namespace: i.Namespace, UID: i.UID}
}
