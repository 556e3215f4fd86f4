// Command build makes the control plane's programs from source: etcd, kube-apiserver, kube-controller-manager
// and kubectl. It needs Go and the module proxy, and no container engine.
//
//	go run ./controlplane/build        in the test module; "make controlplane" does that
//
// What is built, with which flags and into which folder is decided in internal/dev/controlplane/assets. The first
// run takes minutes and later ones none: each program is built under a temporary name and renamed when it is
// whole, so an interrupted run continues where it was, and a lock makes a second run wait for the first.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jobstream/jobstream/internal/dev/controlplane/assets"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "make controlplane:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if os.Getenv(assets.EnvAssets) != "" {
		dir, err := assets.Find()
		if err == nil {
			fmt.Printf("control plane: %s=%s is used, nothing to build\n", assets.EnvAssets, dir)
		}
		return err
	}
	dir, err := assets.BuildDir()
	if err != nil {
		return err
	}
	if whole(dir) {
		fmt.Printf("control plane %s: ready in %s\n", assets.KubernetesVersion, dir)
		return nil
	}
	sources, err := sourceDir(ctx)
	if err != nil {
		return err
	}
	unlock, err := lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	if err := forgetOtherRecipe(dir); err != nil {
		return err
	}
	start := time.Now()
	for _, p := range assets.Programs() {
		if err := build(ctx, dir, sources, p, start); err != nil {
			return err
		}
	}
	fmt.Printf("%4.0fs  control plane %s: ready in %s\n", time.Since(start).Seconds(), assets.KubernetesVersion, dir)
	return nil
}

// recipeFile is beside the programs and names what they were built from.
const recipeFile = "recipe.txt"

// whole reports whether dir holds every program, built by today's recipe.
func whole(dir string) bool {
	recipe, err := os.ReadFile(filepath.Join(dir, recipeFile))
	if err != nil || string(recipe) != assets.Recipe() {
		return false
	}
	for _, p := range assets.Programs() {
		if !assets.Executable(filepath.Join(dir, p.Name)) {
			return false
		}
	}
	return true
}

// forgetOtherRecipe removes what another recipe built: a folder named by JOBSTREAM_CONTROLPLANE_DIR outlives a
// change of version, unlike the cache folder, which has the recipe in its name.
func forgetOtherRecipe(dir string) error {
	path := filepath.Join(dir, recipeFile)
	if recipe, err := os.ReadFile(path); err == nil && string(recipe) == assets.Recipe() {
		return nil
	}
	for _, p := range assets.Programs() {
		if err := os.Remove(filepath.Join(dir, p.Name)); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return os.WriteFile(path, []byte(assets.Recipe()), 0o644)
}

// build makes one program, unless an earlier run finished it.
func build(ctx context.Context, dir, sources string, p assets.Program, start time.Time) error {
	target := filepath.Join(dir, p.Name)
	if assets.Executable(target) {
		return nil
	}
	note := ""
	if p.Name == "kube-apiserver" {
		note = " (the long one: about three minutes the first time)"
	}
	fmt.Printf("%4.0fs  building %s %s%s ...\n", time.Since(start).Seconds(), p.Name, p.Version, note)
	unfinished := filepath.Join(dir, ".unfinished-"+p.Name)
	defer os.Remove(unfinished) // gone after the rename; there after a failure
	args := append([]string{"build", "-mod=readonly"}, assets.BuildFlags()...)
	args = append(args, "-ldflags="+p.LDFlags, "-o", unfinished, p.Package)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(sources, p.Module)
	// No cgo: no C compiler needed, and the program runs on any libc. No workspace or flags of the caller:
	// they would change the versions that the module pins.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s in %s: %w\n%s", p.Name, cmd.Dir, err, tail(string(out), 20))
	}
	return os.Rename(unfinished, target)
}

// lock waits until no other build works on dir. The kernel frees the lock when this process ends, however it ends.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("folder for the control plane: %w; choose another with %s", err, assets.EnvDir)
	}
	file, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		fmt.Println("another build of the control plane is running: waiting for it")
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
			return nil, fmt.Errorf("lock %s: %w", file.Name(), err)
		}
	}
	return func() { file.Close() }, nil
}

// sourceDir finds test/controlplane, wherever in the test module the command was started.
func sourceDir(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/jobstream/jobstream/test")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("not inside the test module: %w; run \"make controlplane\", or start in test/", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "controlplane"), nil
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
