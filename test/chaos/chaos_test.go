package chaos

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

var (
	minutes = flag.Float64("minutes", 2, "how long faults occur")
	seed    = flag.Uint64("seed", 0, "decides the faults and the work; 0 draws one")
	settle  = flag.Duration("settle", 15*time.Minute, "how long everything may take to come to rest after the faults")
	overlay = flag.String("overlay", "", "file for the -overlay flag of the build of the programs under test: see mutants")
)

func TestMain(m *testing.M) {
	flag.Parse()
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // client-go's complaints, in this process, about servers that the test has killed
	os.Exit(m.Run())
}

// Faults of all kinds occur at random. Afterwards the checker finds nothing wrong.
func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: takes minutes and a whole control plane")
	}
	if *seed == 0 {
		*seed = rand.Uint64N(1 << 32)
	}
	again := fmt.Sprintf("make chaos MINUTES=%g SEED=%d", *minutes, *seed)
	fmt.Printf("chaos: seed %d, %g minutes; again: %s\n", *seed, *minutes, again)
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	folder, err := harness.OpenFolder("")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := folder.Close(); err != nil {
			t.Error(err)
		}
	}()
	result, err := runIn(ctx, folder.Dir)
	if result != nil {
		result.Print(os.Stdout)
	}
	if left := harness.Children(); len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}
	if err == nil && result != nil && len(result.Wrong) == 0 {
		return
	}
	kept := filepath.Join(os.TempDir(), fmt.Sprintf("jobstream-chaos-%d-%d", *seed, os.Getpid()))
	if e := os.Rename(folder.Dir, kept); e != nil {
		t.Error(e)
	}
	t.Errorf("seed %d: %v; %d findings, see above; again: %s; the evidence is in %s", *seed, errors.Join(err), found(result), again, kept)
}

func found(r *Result) int {
	if r == nil {
		return 0
	}
	return len(r.Wrong)
}

func runIn(ctx context.Context, dir string) (*Result, error) {
	var flags []string
	if *overlay != "" {
		flags = append(flags, "-overlay="+*overlay)
	}
	programs, err := harness.BuildPrograms(ctx, filepath.Join(dir, "bin"), flags...)
	if err != nil {
		return nil, err
	}
	return Run(ctx, Config{Seed: *seed, Length: time.Duration(*minutes * float64(time.Minute)), Settle: *settle, Programs: programs, Dir: dir,
		Say: func(format string, args ...any) { fmt.Printf("chaos: "+format+"\n", args...) }})
}
