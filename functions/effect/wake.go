package effect

import "time"

// Wake collects the times at which to plan again. A function has one timer, which is set to the earliest of them.
type Wake struct{ at time.Time }

// By requests a plan at the given time; the zero time requests none.
func (w *Wake) By(t time.Time) {
	if !t.IsZero() && (w.at.IsZero() || t.Before(w.at)) {
		w.at = t
	}
}

// Timer returns the effect that sets the timer; nil if no time was requested.
func (w *Wake) Timer() []Effect {
	if w.at.IsZero() {
		return nil
	}
	return []Effect{SetTimer{Name: "wake", At: w.at}}
}
