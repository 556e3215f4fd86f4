// Words finds words that jobstream no longer uses (words.txt, docs/adr/0033-vocabulary.md) in Go files that are no tests, and in
// Markdown. "make lint" runs it.
//
//	go run ./internal/dev/words           each place, and exit code 1 if there is one
//	go run ./internal/dev/words -counts   each word with the number of its places
package main

import (
	"bufio"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

//go:embed words.txt
var list string

// keepsOldWords is the page that has to name them.
const keepsOldWords = "docs/adr/0033-vocabulary.md"

func main() {
	counts := flag.Bool("counts", false, "print how often each word stands anywhere")
	flag.Parse()
	if err := run(os.Stdout, os.DirFS("."), list, *counts); err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	}
}

// entry is one line of words.txt.
type entry struct {
	old, instead, why string
	namesOnly         bool
	places            []string
}

func run(out io.Writer, tree fs.FS, list string, counts bool) error {
	entries, err := parse(list)
	if err != nil {
		return err
	}
	if err := search(tree, entries); err != nil {
		return err
	}
	found := 0
	for _, e := range entries {
		found += len(e.places)
		if counts {
			fmt.Fprintf(out, "%4d  %s\n", len(e.places), e.old)
			continue
		}
		for _, p := range e.places {
			fmt.Fprintf(out, "%s: %q is %q here (%s)\n", p, e.old, e.instead, e.why)
		}
	}
	if found > 0 {
		return fmt.Errorf("%d places use a word that %s has replaced", found, keepsOldWords)
	}
	return nil
}

// parse reads words.txt. Its error names the line that is not as its head says.
func parse(list string) (entries []*entry, err error) {
	for n, line := range strings.Split(list, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, " | ")
		if len(f) != 4 || f[2] != "text" && f[2] != "names" {
			return nil, fmt.Errorf("words.txt:%d: %q is not \"old | instead | text or names | why\"", n+1, line)
		}
		entries = append(entries, &entry{old: f[0], instead: f[1], namesOnly: f[2] == "names", why: f[3]})
	}
	return entries, nil
}

// search notes the places of all entries.
func search(tree fs.FS, entries []*entry) error {
	return fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(name, ".") || name == "bin" || name == "testdata" || name == "node_modules"):
			return fs.SkipDir
		case d.IsDir(), path == keepsOldWords, strings.HasSuffix(name, "_test.go"):
			return nil
		case filepath.Ext(name) != ".go" && filepath.Ext(name) != ".md":
			return nil
		}
		f, err := tree.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(searchFile(f, path, entries), f.Close())
	})
}

// identifier is one word of a text; a comment begins where nothing but prose follows.
var identifier = regexp.MustCompile(`[\pL]+`)

func searchFile(r io.Reader, path string, entries []*entry) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		code, prose := lines.Text(), ""
		if strings.HasSuffix(path, ".md") {
			code, prose = "", code
		} else if before, comment, ok := strings.Cut(code, "//"); ok {
			code, prose = before, comment
		}
		inCode, inProse := parts(literal.ReplaceAllString(code, "")), parts(lines.Text())
		if prose == "" && code != "" {
			inProse = parts(code)
		}
		for _, e := range entries {
			if inCode[e.old] || !e.namesOnly && (inProse[e.old] || strings.Contains(e.old, " ") && strings.Contains(lines.Text(), e.old)) {
				e.places = append(e.places, fmt.Sprintf("%s:%d", path, n))
			}
		}
	}
	return lines.Err()
}

// literal is a string in a line of Go: prose, not names.
var literal = regexp.MustCompile("\"(\\\\.|[^\"\\\\])*\"|`[^`]*`?")

// parts splits the words of a text where their camels have humps, in lower case and without the s of a plural.
func parts(text string) map[string]bool {
	all := map[string]bool{}
	for _, word := range identifier.FindAllString(text, -1) {
		begin := 0
		runes := []rune(word)
		for i := 1; i <= len(runes); i++ {
			if i == len(runes) || unicode.IsUpper(runes[i]) && !unicode.IsUpper(runes[i-1]) {
				part := strings.ToLower(string(runes[begin:i]))
				all[part], all[strings.TrimSuffix(part, "s")] = true, true
				begin = i
			}
		}
	}
	return all
}
