package job

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
)

// valid returns an error that names the law that a state breaks, nil if it breaks none:
//
//   - before the inventory it has no Pods;
//   - the serial of a row is below the next one, and not settled;
//   - the same holds for the serial that is given to an unplaced Pod, and no two of them share one;
//   - a Pod is in one place: it has one row, or is unplaced, or is kept.
func (s State) valid() error {
	if !s.Known && len(s.Pods)+len(s.Unplaced)+len(s.Kept) > 0 {
		return fmt.Errorf("it knows %d Pods, and has taken no inventory", len(s.Pods)+len(s.Unplaced)+len(s.Kept))
	}
	place := make(map[types.UID]string, len(s.Pods)+len(s.Unplaced)+len(s.Kept))
	put := func(uid types.UID, where string) error {
		if other, twice := place[uid]; twice && uid != "" {
			return fmt.Errorf("the Pod %s is %s and %s", uid, other, where)
		}
		place[uid] = where
		return nil
	}
	for serial, r := range s.Pods {
		if serial >= s.Next || s.Settled.Has(serial) || r.Pod.Serial != serial {
			return fmt.Errorf("the row of serial %d has a Pod with serial %d, the next one is %d, settled are %s", serial, r.Pod.Serial, s.Next, s.Settled)
		}
		if err := put(r.Pod.UID, "in a row"); err != nil {
			return err
		}
	}
	given := map[int]types.UID{}
	for uid, u := range s.Unplaced {
		other, twice := given[u.Serial]
		if u.Serial != events.NoSerial && (u.Serial >= s.Next || s.Settled.Has(u.Serial) || twice) {
			return fmt.Errorf("%s is going to have serial %d, the next one is %d, settled are %s, and %q is going to have it, too", uid, u.Serial, s.Next, s.Settled, other)
		}
		given[u.Serial] = uid
		if err := put(uid, "unplaced"); err != nil {
			return err
		}
	}
	for uid := range s.Kept {
		if err := put(uid, "kept"); err != nil {
			return err
		}
	}
	return nil
}
