package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// numbers is the range from first to last, both included.
type numbers struct{ first, last int }

// hashed replaces one term with H (Jenkins, "H" in its cron syntax) by numbers:
//
//	H            one number of the field; of the days of the month 1-28, which every month has
//	H(a-b)       one number from a to b
//	H/n          every n-th number of the field, from one of its first n on
//	H(a-b)/n     the same from a to b
//
// H/1 is rejected: a reader takes it for every number, and Jenkins for one number.
func hashed(field int, term, seed string) (string, error) {
	r := fields[field].hashed
	base, step, stepped := strings.Cut(term, "/")
	if inner, ok := strings.CutPrefix(base, "H("); ok {
		a, b, _ := strings.Cut(strings.TrimSuffix(inner, ")"), "-")
		first, errA := strconv.Atoi(a)
		last, errB := strconv.Atoi(b)
		within := fields[field].all
		if errA != nil || errB != nil || !strings.HasSuffix(inner, ")") || first < within.first || last > within.last || first > last {
			return "", fmt.Errorf("a range for H is H(a-b) with %d <= a <= b <= %d", within.first, within.last)
		}
		r = numbers{first, last}
	}
	n := uint64(r.last - r.first + 1)
	if !stepped {
		return strconv.Itoa(r.first + int(hash(seed, field)%n)), nil
	}
	every, err := strconv.ParseUint(step, 10, 8)
	if err != nil || every < 2 || every > n {
		return "", fmt.Errorf("the step of this H has to be from 2 to %d", n)
	}
	return fmt.Sprintf("%d-%d/%d", r.first+int(hash(seed, field)%every), r.last, every), nil
}

// hash returns the number of a seed for a field. It must never change: schedules would move.
func hash(seed string, field int) uint64 {
	sum := sha256.Sum256([]byte(fields[field].name + "\x00" + seed))
	return binary.BigEndian.Uint64(sum[:])
}
