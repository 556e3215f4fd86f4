// Package zone finds time zones by name. The database is compiled in, so that a schedule means the same on every machine, even on
// one without a database of its own.
package zone

import (
	"errors"
	"fmt"
	"sync"
	"time"
	_ "time/tzdata" // for machines without one
)

// found are the zones that have been loaded: a few dozen at most, and each costs a file to read.
var found sync.Map

// Load finds a zone by its IANA name; "" is UTC. The error has what to write instead.
func Load(name string) (*time.Location, error) {
	switch name {
	case "":
		return time.UTC, nil
	case "Local":
		return nil, errors.New(`"Local" would be another zone on every machine: name one, such as Europe/Berlin`)
	}
	if l, ok := found.Load(name); ok {
		return l.(*time.Location), nil
	}
	l, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%q is no time zone: use a name of the IANA database, such as Europe/Berlin", name)
	}
	found.Store(name, l)
	return l, nil
}
