package parity

import (
	"slices"
	"strings"
)

// around is how many equal lines are shown around a difference, as its context.
const around = 2

// compare compares two portraits line by line; "" means that they are equal.
func compare(a, b Portrait) string {
	var lines [2][]string
	for i, p := range []Portrait{a, b} {
		// In an order that depends only on what is compared.
		slices.SortFunc(p.Pods, func(a, b PodPortrait) int { return strings.Compare(render(a), render(b)) })
		lines[i] = strings.Split(render(p), "\n")
	}
	return diff(lines[0], lines[1])
}

// diff shows the lines that only one of two texts has, each with its neighbours.
func diff(old, now []string) string {
	var out []string
	shown := 0 // lines of old that are already printed
	differs := false
	context := func(to int) {
		for ; shown < to; shown++ {
			out = append(out, "  "+old[shown])
		}
	}
	after := 0 // equal lines that are still to be printed
	walk(old, now, func(i, j int, equal bool) {
		switch {
		case equal && after > 0:
			context(i + 1)
			after--
			return
		case equal:
			return
		}
		differs = true
		if from := i - around; shown < from {
			out = append(out, "  ...")
			shown = from
		}
		context(i)
		if j < 0 {
			out = append(out, "- "+old[i])
			shown = i + 1
		} else {
			out = append(out, "+ "+now[j])
		}
		after = around
	})
	if !differs {
		return ""
	}
	return strings.Join(out, "\n")
}

// walk goes through both texts along a longest common subsequence: equal lines together, then what only old has (j < 0) or
// only now has, which comes before line i of old.
func walk(old, now []string, visit func(i, j int, equal bool)) {
	longest := make([][]int, len(old)+1)
	for i := range longest {
		longest[i] = make([]int, len(now)+1)
	}
	for i := len(old) - 1; i >= 0; i-- {
		for j := len(now) - 1; j >= 0; j-- {
			longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			if old[i] == now[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			}
		}
	}
	i, j := 0, 0
	for i < len(old) || j < len(now) {
		switch {
		case i < len(old) && j < len(now) && old[i] == now[j]:
			visit(i, j, true)
			i, j = i+1, j+1
		case j == len(now) || i < len(old) && longest[i+1][j] >= longest[i][j+1]:
			visit(i, -1, false)
			i++
		default:
			visit(i, j, false)
			j++
		}
	}
}
