package events

import (
	"fmt"
	"math"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Whoever may write in one namespace decides what stands in its objects, and Kubernetes bounds less than one would think:
// the UID and the name in an owner reference must not be empty, and that is all. What we take from an object is bounded here.
const (
	// MaxUID is the length, in bytes, of the longest UID that is anybody's. The API server's own have 36.
	MaxUID = 64
	// maxNamespace and maxName are Kubernetes' own limits on namespaces, and on the names of Jobs, Pods and ScheduledJobs.
	maxNamespace = 63
	maxName      = 253
	// maxFunction is longer than the name of any function.
	maxFunction = 63
	// MaxClaimants is how many Jobs of one namespace, the oldest first, may adopt Pods by a selector of their user's own: as often
	// is each change of an orphan told, and stands each orphan in lists.
	MaxClaimants = 8
	// MaxLabels is how many labels of a Pod are looked at, in the order of their keys: each may take 380 bytes of a fact.
	MaxLabels = 128
	// ownLabels is more than the labels that we give a Pod beside those of its template.
	ownLabels = 8
	// maxExits and maxConditions bound the evidence for a podFailurePolicy: a Pod has few containers, and few conditions.
	maxExits      = 128
	maxConditions = 64
	// maxConditionType is the length of a qualified name, which is what the type of a Pod's condition is.
	maxConditionType = 317
)

// Valid says what is wrong with a key: a part of it is empty, or longer than any object of Kubernetes can make it. A key that
// is valid fits into every subject.
func (k Key) Valid() error {
	for _, part := range []struct {
		name, value string
		most        int
	}{{"function", k.Function, maxFunction}, {"namespace", k.Namespace, maxNamespace}, {"UID", string(k.UID), MaxUID}} {
		switch {
		case part.value == "":
			return fmt.Errorf("key: its %s is empty", part.name)
		case len(part.value) > part.most:
			return fmt.Errorf("key: its %s has %d bytes, at most %d are anybody's", part.name, len(part.value), part.most)
		}
	}
	return nil
}

// owner is the UID that a reference names; "" where no object can have it, or the name in the reference.
func owner(ref *metav1.OwnerReference) types.UID {
	if len(ref.UID) > MaxUID || len(ref.Name) > maxName {
		return ""
	}
	return ref.UID
}

// count brings a number into the range that counters have in Kubernetes.
func count(n int64) int32 { return int32(min(max(n, 0), math.MaxInt32)) }
