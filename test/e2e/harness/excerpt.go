package harness

import "strings"

const (
	// excerptTail and excerptNotable are how many lines of a log are shown: enough to see how it ended and what was unusual
	// before, few enough to be read.
	excerptTail    = 25
	excerptNotable = 40
)

// excerpt is what a person looks for in a log: warnings and errors from all of it, and its end.
func excerpt(log string) string {
	if log == "" {
		return ""
	}
	lines := strings.Split(log, "\n")
	rest := max(0, len(lines)-excerptTail)
	var notable []string
	for _, line := range lines[:rest] {
		if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") || strings.HasPrefix(line, "panic:") {
			notable = append(notable, shorten(line))
		}
	}
	if len(notable) > excerptNotable {
		notable = append(notable[:excerptNotable:excerptNotable], "...")
	}
	for _, line := range lines[rest:] {
		notable = append(notable, shorten(line))
	}
	return strings.Join(notable, "\n")
}

// shorten truncates a line: one about a turn with a thousand effects is long.
func shorten(line string) string {
	const most = 600
	if len(line) > most {
		return line[:most] + "..."
	}
	return line
}
