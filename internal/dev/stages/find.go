package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// target is a line of the Makefile that "make help" shows.
var target = regexp.MustCompile(`(?m)^([a-z0-9-]+):.*?## (.*)$`)

// find looks the stages up in the text of the Makefile.
func find(makefile string, past map[string]float64, names []string) ([]stage, error) {
	shows := map[string]string{}
	for _, m := range target.FindAllStringSubmatch(makefile, -1) {
		shows[m[1]] = m[2]
	}
	var out []stage
	for _, joined := range names {
		for i, name := range strings.Split(joined, "+") {
			if shows[name] == "" {
				return nil, fmt.Errorf("the Makefile has no target %q with a line of help: add one, or correct the name", name)
			}
			out = append(out, stage{name: name, shows: shows[name], last: time.Duration(past[name] * float64(time.Second)), with: i > 0})
		}
	}
	return out, nil
}

// readTimes reads how many seconds each stage took when it passed last. A file that is not there knows of none.
func readTimes(file string) (map[string]float64, error) {
	past := map[string]float64{}
	text, err := os.ReadFile(file)
	switch {
	case file == "" || errors.Is(err, fs.ErrNotExist):
		return past, nil
	case err != nil:
		return nil, err
	}
	if err := json.Unmarshal(text, &past); err != nil {
		return nil, fmt.Errorf("%s: %w: delete it, it is written anew", file, err)
	}
	return past, nil
}

func writeTimes(file string, past map[string]float64) error {
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(past, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
