package controlplane

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/jobstream/jobstream/internal/child"
)

// portTaken means that a program found its port in use: choose another one and retry.
type portTaken struct{ program, printed string }

func (e *portTaken) Error() string { return e.program + ": port is taken: " + e.printed }

// errEnded means that a program ended without Stop.
var errEnded = errors.New("ended by itself")

// process is one of the programs, which prints into a file.
type process struct {
	*child.Process
	name, logFile string
}

// run starts a program and appends its output to logFile. Without env it has this program's environment. unasked is called if it ends
// unexpectedly.
func run(program string, args, env []string, logFile string, unasked func(error)) (*process, error) {
	if err := os.MkdirAll(filepath.Dir(logFile), 0o700); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own descriptor
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = log, log, env
	p := &process{name: filepath.Base(program), logFile: logFile}
	p.Process, err = child.Start(cmd, func(err error) { unasked(p.ended(err)) })
	return p, err
}

// stop stops the program, if it was started.
func (p *process) stop(timeout time.Duration) error {
	if p == nil {
		return nil
	}
	return p.Stop(timeout)
}

// running reports whether it was started and has not ended.
func (p *process) running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.Done():
		return false
	default:
		return true
	}
}

// ended explains an unexpected end, with the last lines of the program's output.
func (p *process) ended(how error) error {
	printed := tail(p.logFile, 8)
	if strings.Contains(printed, "address already in use") {
		return &portTaken{p.name, printed}
	}
	return fmt.Errorf("%s %w (%w); the end of %s:\n%s", p.name, errEnded, how, p.logFile, printed)
}

// tail returns the last lines of a file, from at most its last 16 KiB: enough for any error message.
func tail(path string, lines int) string {
	const window = 16 << 10
	file, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err.Error()
	}
	text := make([]byte, min(info.Size(), window))
	if _, err := file.ReadAt(text, info.Size()-int64(len(text))); err != nil && len(text) > 0 {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
