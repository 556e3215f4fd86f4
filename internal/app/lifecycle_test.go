package app

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
)

func TestExitCodesAndMessages(t *testing.T) {
	cause := errors.New("first line\nsecond line")
	for _, tt := range []struct {
		name string
		args []string
		err  error
		code int
		says string
	}{
		{"fine", nil, nil, ExitFine, ""},
		{"fatal", nil, &Fatal{Cannot: "swim", Err: cause, Remedy: "use a boat"}, ExitFatal,
			"jobstream-test: cannot swim: first line; second line\n  use a boat\n"},
		{"fatal without remedy", nil, &Fatal{Cannot: "swim", Err: cause}, ExitFatal, "jobstream-test: cannot swim: first line; second line\n"},
		{"any other", nil, cause, ExitFatal, "jobstream-test: first line; second line\n"},
		{"usage", nil, Usage{errors.New("no such thing")}, ExitUsage, "jobstream-test: no such thing\n  see \"jobstream-test --help\"\n"},
		{"unknown flag", []string{"--what"}, nil, ExitUsage, "jobstream-test: unknown flag: --what\n  see \"jobstream-test --help\"\n"},
		{"argument", []string{"what"}, nil, ExitUsage, "jobstream-test: unknown command \"what\" for \"jobstream-test\"\n  see \"jobstream-test --help\"\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &cobra.Command{Use: "jobstream-test", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return tt.err }}
			var out, errs bytes.Buffer
			if code := execute(t.Context(), c, tt.args, &out, &errs); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if errs.String() != tt.says || out.Len() > 0 {
				t.Errorf("says %q and %q, want %q", errs.String(), out.String(), tt.says)
			}
		})
	}
}

func TestVersionOnRequest(t *testing.T) {
	c := &cobra.Command{Use: "jobstream-test", RunE: func(*cobra.Command, []string) error { return errors.New("ran") }}
	var out bytes.Buffer
	if code := execute(t.Context(), c, []string{"--version"}, &out, &out); code != ExitFine || !strings.Contains(out.String(), "jobstream-test version") {
		t.Errorf("exit code %d: %s", code, out.String())
	}
}

func TestSignals(t *testing.T) {
	// Each step is a pause and then a signal.
	for _, tt := range []struct {
		name  string
		steps []time.Duration
		ends  time.Duration // when the program is done after the first signal; 0 never
		why   string
	}{
		{"graceful", []time.Duration{0}, time.Second, ""},
		{"an echo", []time.Duration{0, echo / 2}, time.Second, ""},
		{"twice", []time.Duration{0, 2 * echo}, 0, "asked twice"},
		{"too slow", []time.Duration{0}, 0, "still at work"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				signals, ended := make(chan os.Signal, 2), make(chan struct{})
				go func() {
					for _, pause := range tt.steps {
						<-time.After(pause)
						signals <- os.Interrupt
					}
					if tt.ends > 0 {
						<-time.After(tt.ends)
						close(ended)
					}
				}()
				why := obey(signals, cancel, ended)
				if !strings.HasPrefix(why, tt.why) || tt.why == "" && why != "" {
					t.Errorf("ended because %q, want %q", why, tt.why)
				}
				if ctx.Err() == nil {
					t.Error("the first signal did not cancel")
				}
			})
		})
	}
}
