package events

import (
	"fmt"
	"math"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A user who may write in one namespace controls the content of its objects, and Kubernetes limits it less than one would expect:
// the UID and the name in an owner reference must not be empty, and that is all. These limits apply to everything that facts take
// from an object.
const (
	// MaxUID is the length of the longest UID that is accepted, in bytes. The API server's own have 36.
	MaxUID = 64
	// maxNamespace and maxName are Kubernetes' own limits on namespaces, and on the names of Jobs, Pods and ScheduledJobs.
	maxNamespace = 63
	maxName      = 253
	// maxFunction is longer than the name of any function.
	maxFunction = 63
	// MaxAdoptingJobs is how many Jobs of one namespace, the oldest first, may adopt Pods by a user's own selector: each change of an
	// orphan becomes that many facts, and each orphan appears in that many snapshots.
	MaxAdoptingJobs = 8
	// MaxLabels is how many labels of a Pod are used, in the order of their keys: each may take 380 bytes of a fact.
	MaxLabels = 128
	// ownLabels is more than the number of labels that the reconciler adds to those of a Pod's template.
	ownLabels = 8
	// maxExits and maxConditions limit the evidence for a podFailurePolicy: a Pod has few containers, and few conditions.
	maxExits      = 128
	maxConditions = 64
	// listedSchedules, listedExclusions and listedText are one more than the API server accepts: functions/schedule refuses what has as
	// much, and names the limit.
	listedSchedules  = 11
	listedExclusions = 51
	listedText       = 257
	// maxConditionType and maxFinalizer are the length of a qualified name, which is what the type of a Pod's condition is, and a
	// finalizer. maxManager is that of the name of a field manager.
	maxConditionType = 317
	maxFinalizer     = 317
	maxManager       = 128
	// maxFields is how much of a field manager's record is read, in bytes.
	maxFields = 1 << 20
)

// Valid returns an error if a part of the key is empty, or longer than in any object of Kubernetes. A valid key fits into every
// subject.
func (k Key) Valid() error {
	for _, part := range []struct {
		name, value string
		most        int
	}{{"function", k.Function, maxFunction}, {"namespace", k.Namespace, maxNamespace}, {"UID", string(k.UID), MaxUID}} {
		switch {
		case part.value == "":
			return fmt.Errorf("key: its %s is empty", part.name)
		case len(part.value) > part.most:
			return fmt.Errorf("key: its %s has %d bytes, more than the limit of %d", part.name, len(part.value), part.most)
		}
	}
	return nil
}

// owner returns the UID in the reference; "" if no object can have that UID, or the name in the reference.
func owner(ref *metav1.OwnerReference) types.UID {
	if len(ref.UID) > MaxUID || len(ref.Name) > maxName {
		return ""
	}
	return ref.UID
}

// listed returns at most that many entries of a list of schedules, each cut to listedText bytes.
func listed(all []string, most int) (out []string) {
	for _, text := range all[:min(len(all), most)] {
		out = append(out, text[:min(len(text), listedText)])
	}
	return out
}

// count limits a number to the range of counters in Kubernetes.
func count(n int64) int32 { return int32(min(max(n, 0), math.MaxInt32)) }
