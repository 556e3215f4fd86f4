// Command contract writes what docs/events.md promises in a form that programs read: docs/asyncapi.yaml, and a JSON Schema of
// each public event in docs/schemas. All of it is generated from the Go types in events: names and types of fields, which of
// them are optional, their comments, their constants, subjects and attributes. A test fails if the files differ from the types.
//
//	go run -C test ./contract       # "make contract"
//
//	table.go     the events, and what the source of the package events says about them
//	schema.go    the JSON Schema of an event
//	asyncapi.go  the AsyncAPI document
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", "..", "the root of the repository, seen from where this runs")
	flag.Parse()
	if err := write(*root); err != nil {
		fmt.Fprintln(os.Stderr, "contract:", err)
		os.Exit(1)
	}
}

// write replaces the files under docs by what the types say.
func write(root string) error {
	files, err := contract(root)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(root, schemas)); err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // documents that everyone may read
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil { //nolint:gosec // documents that everyone may read
			return err
		}
	}
	return nil
}

const (
	asyncAPI = "docs/asyncapi.yaml"
	schemas  = "docs/schemas"
)

// contract is the content of each file, by its path from the root.
func contract(root string) (map[string][]byte, error) {
	s, err := readSource(root)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	var all []described
	for _, e := range table {
		d, err := s.describe(e)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
		all = append(all, d)
		if files[schemas+"/"+d.cloudEventType+".json"], err = d.file(); err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
	}
	if files[asyncAPI], err = document(all); err != nil {
		return nil, fmt.Errorf("%s: %w", asyncAPI, err)
	}
	return files, nil
}
