package report

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// Main runs the benchmark ./<name> of test/bench in a folder of its own, and ends the process if it fails. It prints how to
// repeat the run and the machine first, and the machine's load last. Nothing stays behind, however it ends.
func Main(name string, measure func(ctx context.Context, dir string) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, name, measure)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench-%s: %v\n", name, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, name string, measure func(ctx context.Context, dir string) error) (err error) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // client-go's complaints about a server that is being stopped
	folder, err := harness.OpenFolder("")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	// Temporary files are deleted with the folder, even if the process is killed.
	temp := filepath.Join(folder.Dir, "tmp")
	if err := errors.Join(os.Mkdir(temp, 0o700), os.Setenv("TMPDIR", temp)); err != nil {
		return err
	}
	fmt.Printf("`%s`\n\n%s\n", strings.TrimSpace("go run -C test/bench ./"+name+" "+strings.Join(os.Args[1:], " ")), Machine())
	if err := measure(ctx, folder.Dir); err != nil {
		return err
	}
	fmt.Printf("\nLoad average at the end: %s\n", LoadAverage())
	return nil
}

// Say prints the progress to stderr.
func Say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().UTC().Format(time.TimeOnly)+" "+format+"\n", args...)
}
