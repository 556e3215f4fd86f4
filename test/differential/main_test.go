package differential_test

import (
	"flag"
	"strconv"

	_ "github.com/jobstream/jobstream/internal/dev/replay"
	"github.com/jobstream/jobstream/internal/dev/size"
)

// Each property is tried on some thousands of inputs, instead of rapid's default of a hundred. A flag on the command line wins:
// go test ./differential -rapid.checks=100000. A failure prints the seed that replays it.
func init() {
	if err := flag.Set("rapid.checks", strconv.Itoa(size.DifferentialChecks)); err != nil {
		panic(err)
	}
}
