// Package flags has what the flags of several programs share: those about NATS, and the environment variable of each flag.
package flags

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// envPrefix begins the name of every environment variable of the programs.
const envPrefix = "JOBSTREAM_"

// EnvName returns the environment variable of a flag: JOBSTREAM_NATS_URL for nats-url.
func EnvName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// hasNoTwin are flags that request something instead of setting a value.
func hasNoTwin(flag string) bool {
	return slices.Contains([]string{"help", "version", "all", "output", "wait", "suspend-schedules", "yes"}, flag)
}

// ShowEnv adds the name of the environment variable to the help of every flag.
func ShowEnv(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !hasNoTwin(f.Name) {
			f.Usage += " [$" + EnvName(f.Name) + "]"
		}
	})
}

// TakeEnv sets every flag that was not given from its environment variable. An empty variable counts as not set, because that is
// what an empty value of a chart or a Compose file means. lookup is os.LookupEnv.
func TakeEnv(flags *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || hasNoTwin(f.Name) {
			return
		}
		value, ok := lookup(EnvName(f.Name))
		if !ok || value == "" {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("environment variable %s: %w", EnvName(f.Name), err))
		}
	})
	return errors.Join(errs...)
}
