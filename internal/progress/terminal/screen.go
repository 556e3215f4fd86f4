// Package terminal shows progress: lines that stay and, on a terminal, a few lines below them that
// are redrawn in place. Without a terminal, or with TERM=dumb, there are only lines that stay.
//
// Bubble Tea redraws. It gets no input: the terminal stays as it is, so that Ctrl-C is a signal as in any program and what is
// typed ahead is for the shell; and it sends the terminal no queries, because it would not read the answers.
package terminal

import (
	"io"
	"os"
	"strings"
	"sync"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"

	"github.com/jobstream/jobstream/internal/progress"
)

// framesPerSecond looks like motion.
const framesPerSecond = 20

// Screen is an output for lines. It is safe for concurrent use.
type Screen struct {
	// Live reports whether lines can be redrawn.
	Live bool

	out  io.Writer
	size func() (width, height int)
	env  func(string) string

	mu      sync.Mutex
	program *tea.Program // while something is drawn
	ended   chan struct{}
}

// New returns a Screen for out. It inspects out and the environment: TERM, NO_COLOR and the locale.
func New(out io.Writer) *Screen {
	s := &Screen{out: out, env: os.Getenv}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		s.Live = true
		s.size = func() (int, int) {
			width, height, err := term.GetSize(int(f.Fd()))
			if err != nil || width <= 0 || height <= 0 {
				return 80, 24
			}
			return width, height
		}
	}
	return s
}

// Style returns the current abilities of the screen: a window may change its size.
func (s *Screen) Style() progress.Style {
	if !s.Live {
		return progress.Style{}
	}
	width, height := s.size()
	// A line that is as wide as the terminal wraps on some; one line is for the cursor.
	return progress.Style{Width: max(1, width-1), Height: max(1, height-1), Colour: s.env("NO_COLOR") == "", Blocks: s.speaksUTF8()}
}

// speaksUTF8 reports whether the locale is UTF-8, by the rules of POSIX.
func (s *Screen) speaksUTF8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := s.env(name); v != "" {
			v = strings.ToUpper(v)
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return false
}

// Say writes lines that stay, above what is drawn.
func (s *Screen) Say(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.Join(lines, "\n")
	if !s.drawing() {
		_, _ = io.WriteString(s.out, text+"\n") // an error means that the terminal is gone
		return
	}
	if text == "" {
		text = " " // an empty line is no line to Bubble Tea
	}
	s.program.Send(tea.Println(text)())
}

// Write writes whole log lines.
func (s *Screen) Write(p []byte) (int, error) {
	s.Say(strings.Split(strings.TrimRight(string(p), "\n"), "\n")...)
	return len(p), nil
}

// Draw replaces what is drawn. It does nothing where lines cannot be redrawn.
func (s *Screen) Draw(lines []string) {
	if !s.Live {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.program == nil {
		s.start()
	}
	// The line after the last is where the cursor is in the end.
	s.program.Send(frame(strings.Join(lines, "\n") + "\n"))
}

// drawing reports whether Bubble Tea uses the terminal. It gives up if that fails.
func (s *Screen) drawing() bool {
	if s.program == nil {
		return false
	}
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// Keep leaves the drawn lines in place, restores the cursor and the terminal, and returns. Call it before the program ends, for
// whatever reason; later output appears below.
func (s *Screen) Keep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.program == nil {
		return
	}
	s.program.Quit()
	<-s.ended
	s.program = nil
}

func (s *Screen) start() {
	width, height := s.size()
	s.program = tea.NewProgram(frame(""), tea.WithInput(nil), tea.WithOutput(s.out), tea.WithWindowSize(width, height),
		tea.WithoutSignalHandler(), tea.WithFPS(framesPerSecond))
	s.ended = make(chan struct{})
	go func(p *tea.Program, ended chan<- struct{}) {
		defer close(ended)
		_, _ = p.Run() // its only error is a lost terminal
	}(s.program, s.ended)
}

// frame is Bubble Tea's model and the message that replaces it: lines that are drawn.
type frame string

// Init starts nothing.
func (f frame) Init() tea.Cmd { return nil }

// Update takes a frame for the one before.
func (f frame) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	if next, ok := m.(frame); ok {
		return next, nil
	}
	return f, nil
}

// View draws it as it is.
func (f frame) View() tea.View {
	v := tea.NewView(string(f))
	v.DisableBracketedPasteMode = true // nothing is read
	return v
}
