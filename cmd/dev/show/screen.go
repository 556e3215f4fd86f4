package show

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// Screen is where the story is told: lines that stay, and below them, on a terminal, lines that are redrawn in place. It
// may be used from any number of goroutines.
type Screen struct {
	out io.Writer
	fd  int // of the terminal

	// Live says that it is a terminal. Where it is not, nothing is redrawn.
	Live bool

	mu    sync.Mutex
	drawn []string
}

// NewScreen looks at what it writes to.
func NewScreen(out io.Writer) *Screen {
	s := &Screen{out: out}
	if f, ok := out.(*os.File); ok {
		s.fd = int(f.Fd())
		s.Live = term.IsTerminal(s.fd) && os.Getenv("TERM") != "dumb"
	}
	return s
}

// Style is what the screen can show now: a window may change its size.
func (s *Screen) Style() Style {
	if !s.Live {
		return Style{}
	}
	width, _, err := term.GetSize(s.fd)
	if err != nil || width <= 0 {
		width = 80
	}
	return Style{Width: width, Colour: os.Getenv("NO_COLOR") == "", Blocks: speaksUTF8()}
}

// speaksUTF8 asks the locale, by the rules of POSIX.
func speaksUTF8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := os.Getenv(name); v != "" {
			v = strings.ToUpper(v)
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return false
}

// Say writes lines that stay.
func (s *Screen) Say(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.update(lines, s.drawn)
}

// Draw redraws the lines at the bottom. It does nothing where there is no terminal.
func (s *Screen) Draw(lines []string) {
	if !s.Live {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.update(nil, lines)
}

// Keep lets what is drawn stay as it is: nothing redraws it any more.
func (s *Screen) Keep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drawn = nil
}

// Write makes the screen a place for logs.
func (s *Screen) Write(p []byte) (int, error) {
	s.Say(strings.Split(strings.TrimRight(string(p), "\n"), "\n")...)
	return len(p), nil
}

// update writes everything at once, so that nothing flickers.
func (s *Screen) update(stay, drawn []string) {
	var b strings.Builder
	if len(s.drawn) > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", len(s.drawn)) // up to the first drawn line, and clear from there
	}
	for _, line := range append(stay, drawn...) {
		b.WriteString(line)
		b.WriteByte('\n')
	}
	s.drawn = drawn
	_, _ = io.WriteString(s.out, b.String()) // a terminal that is gone needs no picture
}
