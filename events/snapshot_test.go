package events_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/events"
)

// snapshotOf returns a snapshot of that many Pods, each with a name of that many bytes.
func snapshotOf(pods, bytes int) events.JobListed {
	list := events.JobListed{ID: "relist/7/9", Name: "pi", Job: &events.Job{Namespace: "default", Name: "pi", UID: "u"}, JobsVersion: 7, Version: 9, AdoptsNone: true}
	for i := range pods {
		list.Pods = append(list.Pods, events.Pod{Name: strings.Repeat("n", bytes), UID: types.UID(fmt.Sprintf("%06d", (i*7919)%1_000_003)), Version: 5, Serial: i})
	}
	return list
}

func TestASnapshotThatFitsStaysWhole(t *testing.T) {
	for name, list := range map[string]events.JobListed{
		"no Pods":                    snapshotOf(0, 1),
		"one Pod that is very large": snapshotOf(1, 3<<20),
		"as many as one message has": snapshotOf(2000, 63),
	} {
		t.Run(name, func(t *testing.T) {
			parts := list.Split(events.SnapshotPart)
			if got, whole := parts[0].(events.JobListed); len(parts) != 1 || !whole || !slices.EqualFunc(got.Pods, list.Pods, func(a, b events.Pod) bool { return a.UID == b.UID }) {
				t.Errorf("%d parts, the first is a %s", len(parts), parts[0].Type())
			}
		})
	}
}

// TestALargeSnapshotIsSplit: by the number of its Pods, and by their size, so that each part is far below the largest message.
func TestALargeSnapshotIsSplit(t *testing.T) {
	for name, c := range map[string]struct{ pods, bytes, parts int }{
		"many Pods":           {20_001, 63, 11},
		"Pods that are large": {100, 100 << 10, 5},
	} {
		t.Run(name, func(t *testing.T) {
			parts := snapshotOf(c.pods, c.bytes).Split(events.SnapshotPart)
			if len(parts) != c.parts {
				t.Errorf("%d parts, want %d", len(parts), c.parts)
			}
			for _, p := range parts {
				data, err := events.Encode(events.Fact{Cluster: "c", Key: events.Key{Function: "job", Namespace: "default", UID: "u"}, Event: p})
				if err != nil || len(data) > 3<<20 {
					t.Errorf("%d bytes, %v", len(data), err)
				}
				f, err := events.Decode(data)
				back, ok := f.Event.(events.JobPartListed)
				if sent := p.(events.JobPartListed); err != nil || !ok || back.From != sent.From || back.To != sent.To || len(back.Pods) != len(sent.Pods) || back.Version != 9 {
					t.Errorf("decoded as a %s of %d Pods from %q to %q, %v", f.Event.Type(), len(back.Pods), back.From, back.To, err)
				}
			}
		})
	}
}

// TestPartsCoverEverythingOnce: every possible UID is in the range of exactly one part, and every Pod in the part of its UID.
func TestPartsCoverEverythingOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := events.JobListed{ID: "x", JobsVersion: 3, Version: 4}
		for _, uid := range rapid.SliceOfDistinct(rapid.StringMatching(`[a-c]{1,4}`), rapid.ID).Draw(t, "uids") {
			list.Pods = append(list.Pods, events.Pod{UID: types.UID(uid), Name: strings.Repeat("n", rapid.IntRange(0, 300).Draw(t, "size"))})
		}
		share := events.Share{Pods: rapid.IntRange(0, 5).Draw(t, "pods"), Bytes: rapid.SampledFrom([]int{0, 300, 1000}).Draw(t, "bytes")}
		parts, ids, pods := list.Split(share), map[string]bool{}, 0
		next := types.UID("")
		for i, e := range parts {
			ids[events.Fact{Event: e}.ID()] = true
			p, split := e.(events.JobPartListed)
			if !split {
				p = events.JobPartListed{JobListed: e.(events.JobListed)}
			}
			size := 0
			for _, pod := range p.Pods {
				data, _ := json.Marshal(pod)
				size += len(data)
				if pod.UID < p.From || p.To != "" && pod.UID >= p.To {
					t.Fatalf("%s is not from %q to %q", pod.UID, p.From, p.To)
				}
			}
			if pods += len(p.Pods); len(p.Pods) > 1 && (share.Pods > 0 && len(p.Pods) > share.Pods || share.Bytes > 0 && size > share.Bytes) {
				t.Fatalf("part %d has %d Pods of %d bytes", i, len(p.Pods), size)
			}
			if p.From != next || (p.To == "") != (i == len(parts)-1) || p.ID != "x" || p.JobsVersion != 3 || p.Version != 4 {
				t.Fatalf("part %d of %d is from %q to %q; the one before ends at %q", i, len(parts), p.From, p.To, next)
			}
			next = p.To
		}
		if pods != len(list.Pods) || len(ids) != len(parts) {
			t.Fatalf("%d of %d Pods, %d ids for %d parts", pods, len(list.Pods), len(ids), len(parts))
		}
	})
}

// TestWhatAShareLimits: a share without a number of Pods, or without a size, does not limit it; a part may have exactly its number.
func TestWhatAShareLimits(t *testing.T) {
	for _, test := range []struct {
		name  string
		share events.Share
		parts int
	}{
		{"nothing", events.Share{}, 1},
		{"the number, as many as there are", events.Share{Pods: 20}, 1},
		{"the number, one less", events.Share{Pods: 19}, 2},
		{"the size, with room for all", events.Share{Bytes: 1 << 20}, 1},
		{"the size of one", events.Share{Bytes: 1}, 20},
	} {
		if parts := snapshotOf(20, 63).Split(test.share); len(parts) != test.parts {
			t.Errorf("limits %s: %d parts, want %d", test.name, len(parts), test.parts)
		}
	}
}
