package terminal

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/jobstream/jobstream/internal/progress"
)

// buffer is written to by Bubble Tea's goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func live(out *buffer, env map[string]string) *Screen {
	return &Screen{Live: true, out: out, size: func() (int, int) { return 80, 24 }, env: func(name string) string { return env[name] }}
}

// The test of the session on a pseudo-terminal, in test/e2e, sees what all this looks like.
func TestScreenGivesTheTerminalBack(t *testing.T) {
	var out buffer
	s := live(&out, nil)
	s.Say("before")
	s.Draw([]string{"a", "b"})
	s.Say("news")
	s.Draw([]string{"A", "B"})
	s.Keep()
	s.Keep()
	s.Say("after")
	got := out.String()
	for _, text := range []string{"before\n", "news", "A", "B", "after\n"} {
		if !strings.Contains(got, text) {
			t.Errorf("%q is missing in %q", text, got)
		}
	}
	if hidden, shown := strings.LastIndex(got, ansi.HideCursor), strings.LastIndex(got, ansi.ShowCursor); hidden < 0 || shown < hidden {
		t.Errorf("the cursor was hidden at %d and shown at %d in %q", hidden, shown, got)
	}
	for what, sequence := range map[string]string{
		"asks for the keyboard's protocol": ansi.RequestKittyKeyboard, "asks for a mode": ansi.RequestModeSynchronizedOutput,
		"asks where the cursor is": ansi.RequestCursorPositionReport, "takes pasted text": ansi.SetModeBracketedPaste, "takes the whole screen": ansi.SetModeAltScreen,
	} {
		if strings.Contains(got, sequence) {
			t.Errorf("%s: %q", what, got)
		}
	}
	s.Draw([]string{"again"})
	s.Keep()
	if !strings.Contains(out.String(), "again") {
		t.Errorf("nothing is drawn after it was kept: %q", out.String())
	}
}

func TestScreenThatIsNoTerminalOnlyGrows(t *testing.T) {
	var out bytes.Buffer
	s := New(&out)
	s.Draw([]string{"a"})
	s.Say("news", "more")
	_, _ = s.Write([]byte("log\n"))
	s.Keep()
	if out.String() != "news\nmore\nlog\n" || s.Style() != (progress.Style{}) || s.Live {
		t.Errorf("wrote %q in style %+v", out.String(), s.Style())
	}
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if New(file).Live {
		t.Error("a file is taken for a terminal")
	}
}

func TestStyleOfATerminal(t *testing.T) {
	plain := progress.Style{Width: 79, Height: 23, Colour: true}
	for _, tt := range []struct {
		name string
		env  map[string]string
		want func(*progress.Style)
	}{
		{"nothing known", nil, func(*progress.Style) {}},
		{"UTF-8", map[string]string{"LANG": "en_US.UTF-8"}, func(s *progress.Style) { s.Blocks = true }},
		{"the stronger variable wins", map[string]string{"LANG": "en_US.UTF-8", "LC_ALL": "C"}, func(*progress.Style) {}},
		{"no colours", map[string]string{"NO_COLOR": "1"}, func(s *progress.Style) { s.Colour = false }},
	} {
		want := plain
		tt.want(&want)
		if got := live(&buffer{}, tt.env).Style(); got != want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, want)
		}
	}
}
