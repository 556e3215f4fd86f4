package job

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
)

// valid returns an error that names the law that a state breaks, nil if it breaks none: before the inventory it has no Pods, and
// those of the table.
func (s State) valid() error {
	if n := s.unsettled() + len(s.Kept); !s.Known && n > 0 {
		return fmt.Errorf("it knows %d Pods, and has taken no inventory", n)
	}
	return s.Table.valid()
}

// valid returns an error that names the law that a table breaks:
//
//   - the serial of a row is below the next one, and not settled;
//   - the same holds for the serial that is given to an unplaced Pod, and no two of them share one;
//   - a Pod is in one place: it has one row, or is unplaced, or is kept.
func (t Table) valid() error {
	place := make(map[types.UID]string, t.unsettled()+len(t.Kept))
	put := func(uid types.UID, where string) error {
		if other, twice := place[uid]; twice && uid != "" {
			return fmt.Errorf("the Pod %s is %s and %s", uid, other, where)
		}
		place[uid] = where
		return nil
	}
	for serial, r := range t.Pods {
		if serial >= t.Next || t.Settled.Has(serial) || r.Pod.Serial != serial {
			return fmt.Errorf("the row of serial %d has a Pod with serial %d, the next one is %d, settled are %s", serial, r.Pod.Serial, t.Next, t.Settled)
		}
		if err := put(r.Pod.UID, "in a row"); err != nil {
			return err
		}
	}
	given := map[int]types.UID{}
	for uid, u := range t.Unplaced {
		other, twice := given[u.Serial]
		if u.Serial != events.NoSerial && (u.Serial >= t.Next || t.Settled.Has(u.Serial) || twice) {
			return fmt.Errorf("%s is going to have serial %d, the next one is %d, settled are %s, and %q is going to have it, too", uid, u.Serial, t.Next, t.Settled, other)
		}
		given[u.Serial] = uid
		if err := put(uid, "unplaced"); err != nil {
			return err
		}
	}
	for uid := range t.Kept {
		if err := put(uid, "kept"); err != nil {
			return err
		}
	}
	return nil
}
