// Package replay leaves what a test has drawn with rapid to be drawn again by its seed, which rapid prints, and by nothing else.
// Rapid would write a file to testdata/rapid, too, which Git ignores, and every later run of the test would try it first: a run
// could fail because of what another one has left behind. Each package whose tests draw imports this one for that:
//
//	import _ "github.com/jobstream/jobstream/internal/dev/replay"
//
// For a failure that takes long to find, -rapid.nofailfile=false brings the file back. It is to be removed afterwards.
package replay

import (
	"flag"

	_ "pgregory.net/rapid" // has to define its flags first
)

func init() {
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		panic(err)
	}
}
