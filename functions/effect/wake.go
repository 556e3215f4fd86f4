package effect

import "time"

// Wake collects when to look again. A function has one timer, which is set to the earliest of everything that waits for
// time to pass.
type Wake struct{ at time.Time }

// By asks to look again at the given time; the zero time asks for nothing.
func (w *Wake) By(t time.Time) {
	if !t.IsZero() && (w.at.IsZero() || t.Before(w.at)) {
		w.at = t
	}
}

// Timer is the effect that does it; nil where nobody has asked.
func (w *Wake) Timer() []Effect {
	if w.at.IsZero() {
		return nil
	}
	return []Effect{SetTimer{Name: "wake", At: w.at}}
}
