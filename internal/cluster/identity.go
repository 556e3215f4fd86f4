package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
)

// identity tells a Job or a ScheduledJob from all others. Its UID alone would do if nobody lied: but whoever may write in one
// namespace may write the UID of another one's object into an owner reference or a label. So whatever an object says about its
// owner holds within its own namespace only.
type identity struct {
	namespace string
	uid       types.UID
}

func identityOf(o metav1.Object) identity { return identity{o.GetNamespace(), o.GetUID()} }

// ofKey is the identity of the object that the key is about.
func ofKey(key events.Key) identity { return identity{key.Namespace, key.UID} }

// key is that of a function's memory of the object.
func (i identity) key(function string) events.Key {
	return events.Key{Function: function, Namespace: i.namespace, UID: i.uid}
}
