// Package finding is the language in which those that look say what they have found: the bus and the cluster do not know
// each other, and the command that asks both prints one table.
package finding

import "fmt"

// Level says how bad it is.
type Level int

// The levels. Fail is what keeps work from being done; Warn is what will, or what is not as it was asked for.
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
	// Check names what was looked at, in a few words that stay the same.
	Check string `json:"check"`
	Level Level  `json:"status"`
	// Found is what there is. It holds no credentials.
	Found string `json:"found"`
	// Advice is what to do about it, where there is something to do.
	Advice string `json:"advice,omitempty"`
}

// Good makes a finding of a check that is content.
func Good(check, format string, args ...any) Finding {
	return Finding{Check: check, Found: fmt.Sprintf(format, args...)}
}

// Worry makes one that is not.
func Worry(check string, level Level, advice, format string, args ...any) Finding {
	return Finding{Check: check, Level: level, Found: fmt.Sprintf(format, args...), Advice: advice}
}
