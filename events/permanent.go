package events

import "errors"

// Permanent reports whether err, or an error that it wraps, has a method Permanent() bool that returns true: the bus has rejected a
// fact, a state or a public event and will reject it each time, such as one that is too large.
func Permanent(err error) bool {
	var p interface{ Permanent() bool }
	return errors.As(err, &p) && p.Permanent()
}
