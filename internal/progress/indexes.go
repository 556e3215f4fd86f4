package progress

import (
	"strconv"
	"strings"

	"github.com/jobstream/jobstream/functions/intervals"
)

// maxIndexText is more than a Job of 100,000 completions, Kubernetes' limit where failures count per index, can need: every
// second index, each with its comma, is 300 kB.
const maxIndexText = 1 << 20

// indexes are those of a status: "0-3,7". They are kept as intervals, so that "0-2147483647" costs what it says.
type indexes struct {
	text string
	set  intervals.Set
	// unreadable says that the text is not what Kubernetes writes. Then the set is empty.
	unreadable bool
}

// read takes in the text of a status of so many completions. It costs the length of the text, and nothing if it is the same
// as before.
func (x *indexes) read(text string, completions int) {
	if text == x.text && text != "" {
		return
	}
	*x = indexes{text: text}
	if len(text) > maxIndexText {
		x.text, x.unreadable = "", true
		return
	}
	set, err := intervals.Parse(text)
	if err != nil {
		x.unreadable = true
		return
	}
	x.set = set.Below(completions)
}

// coverage tells for each of so many buckets, each of size indexes, how many of its indexes are in the set.
func coverage(set intervals.Set, size, buckets int) []int {
	counts := make([]int, buckets)
	for _, v := range set {
		for b := v.First / size; b <= v.Last/size && b < buckets; b++ {
			counts[b] += min(v.Last, b*size+size-1) - max(v.First, b*size) + 1
		}
	}
	return counts
}

// some writes as much of the set as fits into so many characters, and says how many more indexes there are.
func some(set intervals.Set, width int) string {
	const more = len(" and 2147483647 more")
	text, left := "", set.Len()
	for i, v := range set {
		part := intervals.Set{v}.String()
		if i > 0 {
			part = "," + part
		}
		rest := left - (v.Last - v.First + 1)
		room := width
		if rest > 0 {
			room -= more
		}
		if len(text)+len(part) > room {
			break
		}
		text, left = text+part, rest
	}
	switch {
	case left == 0:
		return text
	case text == "":
		return strconv.Itoa(left) + " of them"
	}
	return strings.TrimSuffix(text, ",") + " and " + strconv.Itoa(left) + " more"
}
