// Package report is what all benchmarks share: their start and end, the source of their numbers, their output.
package report

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Machine describes the machine of the measurement.
func Machine() string {
	return fmt.Sprintf("%s. %d cores (%s), %s of memory, %s %s/%s. Load average at the start: %s",
		time.Now().UTC().Format("2006-01-02 15:04 UTC"), runtime.NumCPU(), field("/proc/cpuinfo", "model name"),
		memory(), runtime.Version(), runtime.GOOS, runtime.GOARCH, LoadAverage())
}

// LoadAverage returns the load of the machine in the last one, five and fifteen minutes, the benchmark included.
func LoadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	words := strings.Fields(string(text))
	if err != nil || len(words) < 3 {
		return "unknown"
	}
	return strings.Join(words[:3], " ")
}

// field returns the first value of that name in a file of "name: value" lines.
func field(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func memory() string {
	kib, err := kibibytes("/proc/meminfo", "MemTotal")
	if err != nil {
		return "an unknown amount"
	}
	return Mebibytes(kib)
}

func kibibytes(path, name string) (int64, error) {
	return strconv.ParseInt(strings.TrimSuffix(field(path, name), " kB"), 10, 64)
}

// Usage is what a process has used of the machine.
type Usage struct {
	// RSS is its resident memory now, Peak its maximum, in KiB.
	RSS, Peak int64
	// CPU is the time that it has computed.
	CPU time.Duration
}

// hertz is the unit of CPU times in /proc: the same on all platforms of Linux, whatever the kernel's own clock does.
const hertz = 100

// UsageOf is of the one child process that runs the program.
func UsageOf(program string) (u Usage, err error) {
	dir, err := find(program)
	if err != nil {
		return u, err
	}
	status := filepath.Join(dir, "status")
	var errs [3]error
	u.RSS, errs[0] = kibibytes(status, "VmRSS")
	u.Peak, errs[1] = kibibytes(status, "VmHWM")
	u.CPU, errs[2] = cpuTime(filepath.Join(dir, "stat"))
	return u, errors.Join(errs[:]...)
}

// ResetPeak makes the Peak of that process begin anew: what it needs from now on, without what it has needed to come here.
func ResetPeak(program string) error {
	dir, err := find(program)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "clear_refs"), []byte("5"), 0) // proc(5): reset the peak resident set size
}

// find returns the folder in /proc of the one child process that runs the program.
func find(program string) (dir string, err error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return "", err
	}
	for _, dir := range dirs {
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !bytes.HasPrefix(line, []byte(program+"\x00")) {
			continue // it has ended, or is another process now
		}
		if field(filepath.Join(dir, "status"), "PPid") == strconv.Itoa(os.Getpid()) {
			return dir, nil // others run under another control plane on this machine
		}
	}
	return "", fmt.Errorf("%s is not in /proc: this is measured on Linux only", program)
}

// cpuTime returns what a process has spent, in the program and in the kernel for it.
func cpuTime(stat string) (time.Duration, error) {
	text, err := os.ReadFile(stat)
	if err != nil {
		return 0, err
	}
	// "pid (name) state ...", and the name may contain anything; utime and stime are fields 14 and 15 of proc(5).
	_, rest, _ := strings.Cut(string(text), ") ")
	words := strings.Fields(rest)
	if len(words) < 13 {
		return 0, fmt.Errorf("%s cannot be read: %q", stat, text)
	}
	user, err := strconv.ParseInt(words[11], 10, 64)
	system, err2 := strconv.ParseInt(words[12], 10, 64)
	return time.Duration(user+system) * time.Second / hertz, errors.Join(err, err2)
}
