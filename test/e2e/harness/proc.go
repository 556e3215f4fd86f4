package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ProcessesWith returns the command lines of the running processes that have the variable in their environment; none on a system
// without /proc.
func ProcessesWith(variable string) (commands []string) {
	for _, dir := range processes() {
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err == nil && strings.Contains("\x00"+string(env), "\x00"+variable+"\x00") {
			commands = append(commands, describe(dir))
		}
	}
	return commands
}

// Children returns the command lines of the running child processes of this one.
func Children() (commands []string) {
	for _, dir := range processes() {
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		// "pid (name) state parent ...", and the name may contain anything.
		_, rest, ok := strings.Cut(string(stat), ") ")
		words := strings.Fields(rest)
		if err == nil && ok && len(words) > 1 && words[1] == strconv.Itoa(os.Getpid()) {
			commands = append(commands, describe(dir))
		}
	}
	return commands
}

func processes() []string {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	return dirs
}

func describe(dir string) string {
	line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
	return fmt.Sprintf("%s: %s", filepath.Base(dir), shorten(strings.ReplaceAll(string(line), "\x00", " ")))
}
