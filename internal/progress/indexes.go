package progress

import (
	"strconv"
	"strings"

	"github.com/jobstream/jobstream/functions/intervals"
)

// maxIndexText is more than a Job of 100,000 completions, Kubernetes' limit where failures count per index, can need: every
// second index, each with its comma, is 300 kB.
const maxIndexText = 1 << 20

// indexes are the indexes in a status: "0-3,7". They are kept as intervals, so that "0-2147483647" costs no more than its text.
type indexes struct {
	text string
	set  intervals.Set
	// unreadable reports whether the text is invalid. Then the set is empty.
	unreadable bool
}

// read parses the text of a status with that many completions. It costs the length of the text, and nothing if the text is
// unchanged.
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

// coverage returns for each bucket of size indexes how many of its indexes are in the set.
func coverage(set intervals.Set, size, buckets int) []int {
	counts := make([]int, buckets)
	for _, v := range set {
		for b := v.First / size; b <= v.Last/size && b < buckets; b++ {
			counts[b] += min(v.Last, b*size+size-1) - max(v.First, b*size) + 1
		}
	}
	return counts
}

// some formats as much of the set as fits into width characters, and the number of the remaining indexes.
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
