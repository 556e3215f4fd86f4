package progress

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// How much of an object's texts is used, in bytes. A message may have 32 kB, and a line shows about 100 of them.
const (
	maxName    = 253
	maxMessage = 500
)

// Why returns the reason and the message of a condition, safe to print.
func Why(reason, message string) string {
	return Clean(reason, maxName) + ": " + Clean(message, maxMessage)
}

// Clean makes a text safe to print: it replaces unprintable characters, above all control characters and those that change the
// direction of writing, by "?", and line breaks by blanks, and returns at most that many bytes.
func Clean(text string, most int) string {
	if len(text) > most {
		for most > 0 && !utf8.RuneStart(text[most]) {
			most--
		}
		text = text[:most]
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, text)
}

// Style describes the output.
type Style struct {
	// Width is the number of columns; 0 is as many as a line needs, which is 100 for what may have any width.
	Width int
	// Height is the number of lines that a frame may have; 0 is any.
	Height int
	// Colour allows escape sequences for colours, Blocks characters that are not ASCII.
	Colour, Blocks bool
}

// Colour is the parameter of an SGR sequence.
type Colour string

// The colours. Each has one meaning wherever it is used.
const (
	Normal Colour = ""
	Red    Colour = "31" // it went wrong
	Green  Colour = "32" // it went well
	Yellow Colour = "33" // it needs attention, or waits
	Cyan   Colour = "36" // it runs
	Faint  Colour = "2"  // nothing happened
)

// Paint returns the text in the colour, if the style has colours.
func (s Style) Paint(text string, c Colour) string {
	if c == Normal || !s.Colour || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// Fit cuts a line without escape sequences to the style's width, if that has one.
func (s Style) Fit(line string) string {
	if s.Width <= 0 {
		return line
	}
	return s.fit(line, s.Width)
}

// fit cuts a text without escape sequences to that many columns, and marks the cut.
func (s Style) fit(text string, width int) string {
	if !s.Blocks {
		text = strings.Map(func(r rune) rune {
			if r > unicode.MaxASCII {
				return '?'
			}
			return r
		}, text)
	}
	if width <= 0 {
		return ""
	}
	tail := ".."
	if s.Blocks {
		tail = "…"
	}
	return ansi.Truncate(text, width, tail)
}

// pad fills a text up to so many columns, on its left where it is a number.
func pad(text string, width int, number bool) string {
	blanks := strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
	if number {
		return blanks + text
	}
	return text + blanks
}
