package app

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// The exit codes of every program.
const (
	ExitFine  = 0
	ExitFatal = 1 // it could not do its work
	ExitUsage = 2 // the command line was wrong
)

// Fatal is a reason to end: what could not be done, why, and what to do about it.
type Fatal struct {
	// Cannot completes "cannot ...": "reach the bus".
	Cannot string
	Err    error
	// Remedy is a sentence for the user who started the program; it names the flags, which adapters do not know. May be empty.
	Remedy string
}

func (f *Fatal) Error() string { return fmt.Sprintf("cannot %s: %v", f.Cannot, f.Err) }

func (f *Fatal) Unwrap() error { return f.Err }

// Usage is an error in how the program was called.
type Usage struct{ Err error }

func (u Usage) Error() string { return u.Err.Error() }

func (u Usage) Unwrap() error { return u.Err }

// exitCode returns the exit code for the error.
func exitCode(err error) int {
	usage := Usage{}
	switch {
	case err == nil:
		return ExitFine
	case errors.As(err, &usage):
		return ExitUsage
	}
	return ExitFatal
}

// explain writes the error as one line and its remedy, if it has one, as another.
//
//	jobstream-trigger: cannot reach the bus: NATS at nats://127.0.0.1:4222 cannot be reached: connection refused
//	  is a NATS server running there? --nats-url (JOBSTREAM_NATS_URL) says where to look
func explain(w io.Writer, program string, err error) {
	fmt.Fprintf(w, "%s: %s\n", program, oneLine(err.Error()))
	fatal, usage := (*Fatal)(nil), Usage{}
	switch {
	case errors.As(err, &usage):
		fmt.Fprintf(w, "  see %q\n", program+" --help")
	case errors.As(err, &fatal) && fatal.Remedy != "":
		fmt.Fprintf(w, "  %s\n", fatal.Remedy)
	}
}

// oneLine prevents log collectors from splitting an error.
func oneLine(s string) string {
	return strings.ReplaceAll(strings.TrimSpace(s), "\n", "; ")
}
