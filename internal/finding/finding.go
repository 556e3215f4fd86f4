// Package finding is the common form of check results: the bus and the cluster do not know each other, and the doctor that runs
// the checks of both prints one table.
package finding

import "fmt"

// Level is the severity.
type Level int

// The levels. Fail keeps work from being done; Warn will do so, or is a setting that has no effect.
const (
	OK Level = iota
	Warn
	Fail
)

var levels = [...]string{"OK", "WARN", "FAIL"}

func (l Level) String() string {
	if l < OK || l > Fail {
		return fmt.Sprintf("Level(%d)", int(l))
	}
	return levels[l]
}

// MarshalText implements encoding.TextMarshaler.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *Level) UnmarshalText(text []byte) error {
	for n, s := range levels {
		if s == string(text) {
			*l = Level(n)
			return nil
		}
	}
	return fmt.Errorf("%q is no level: they are %v", text, levels)
}

// Finding is the outcome of one check.
type Finding struct {
	// Check names the check, in a few words that stay the same.
	Check string `json:"check"`
	Level Level  `json:"status"`
	// Found is the result. It has no credentials.
	Found string `json:"found"`
	// Advice is the remedy, if there is something to do.
	Advice string `json:"advice,omitempty"`
}

// Good returns a finding of a check that passed.
func Good(check, format string, args ...any) Finding {
	return Finding{Check: check, Found: fmt.Sprintf(format, args...)}
}

// Worry returns a finding of a check that did not pass.
func Worry(check string, level Level, advice, format string, args ...any) Finding {
	return Finding{Check: check, Level: level, Found: fmt.Sprintf(format, args...), Advice: advice}
}
