// Package pod names and builds the Pods of a Job: what the effect CreatePod means at the API server. It decides nothing.
//
//	name.go        <job>-<index>-<suffix>: the suffix encodes the serial, so a name proves it
//	build.go       the Pod of a serial, from the Job's template
//	parameters.go  per-completion values from a ConfigMap
//	env.go         which variables come first in its environment
package pod

import (
	"hash/fnv"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
)

const (
	// suffixLength is that of generated names in Kubernetes.
	suffixLength = 5
	// suffixes is the number of suffixes: 27^5. No two serials below it share a name within a Job.
	suffixes = 14_348_907
	// suffixStride visits all suffixes before it repeats one, because it is coprime to 3. It lies near the golden section of
	// suffixes, so that the names of successive serials do not look alike.
	suffixStride = 8_868_113
	// suffixInverse undoes the stride: the product of the two is 1 modulo suffixes.
	suffixInverse = 7_925_777
	// maxName is the length of a DNS label: a Pod's name is also its hostname.
	maxName = 63
)

// Name returns the name of the Pod with that serial: "<job>-<suffix>", or "<job>-<index>-<suffix>" unless index is
// events.NoIndex. It depends on its arguments only, so a repeated creation finds the Pod that the first one created. Within one
// Job (one UID) it is injective in the serial. The Job's name is cut so that the whole has at most 63 characters.
func Name(jobName string, uid types.UID, serial, index int) string {
	tail := "-" + suffix(uid, serial)
	if index != events.NoIndex {
		tail = "-" + strconv.Itoa(index) + tail
	}
	return cut(jobName, maxName-len(tail)) + tail
}

// suffix writes (serial * stride + hash of the UID) mod 27^5 in base 27: a bijection of the serials below 27^5, shifted by the
// UID, so that a Job does not collide with the leftover Pods of an earlier Job of the same name.
func suffix(uid types.UID, serial int) string {
	n := (uint64(serial)%suffixes*suffixStride + shift(uid)) % suffixes
	return events.Suffix(n, suffixLength)
}

func shift(uid types.UID) uint64 {
	h := fnv.New64a()
	h.Write([]byte(uid))
	return h.Sum64() % suffixes
}

// SerialIn returns the serial that Name encoded in a name for the Job, with any index; ok is false for any other name.
func SerialIn(name, jobName string, uid types.UID) (serial int, ok bool) {
	stem, tail := cutLast(name)
	n := uint64(0)
	for i := range len(tail) {
		n = (n*uint64(len(events.SuffixDigits)) + uint64(strings.IndexByte(events.SuffixDigits, tail[i]))) % suffixes
	}
	serial = int((n + suffixes - shift(uid)) % suffixes * suffixInverse % suffixes)
	if name == Name(jobName, uid, serial, events.NoIndex) { // also rejects a tail that is not a suffix
		return serial, true
	}
	_, last := cutLast(stem)
	index, err := strconv.Atoi(last)
	return serial, err == nil && name == Name(jobName, uid, serial, index)
}

// cutLast cuts around the last hyphen.
func cutLast(s string) (before, after string) {
	i := strings.LastIndexByte(s, '-')
	return s[:max(i, 0)], s[i+1:]
}

// cut shortens a name to at most n characters that a hyphen may follow: "a.-b" is not legal where "a-b" is.
func cut(name string, n int) string {
	return strings.TrimRight(name[:min(len(name), n)], "-.")
}
