package main

import (
	"strings"
	"testing"
	"testing/fstest"
)

const three = "# what is looked for\n\nsight | observation | text | it is observed\ntrouble | problem | names | plain English\nsays that | reports whether | text | Go does\n"

func TestWords(t *testing.T) {
	for _, c := range []struct{ name, file, text, want string }{
		{"a word of a comment", "a.go", "// f returns the newest sight.", `a.go:1: "sight" is "observation" here (it is observed)`},
		{"two of them", "a.go", "// All Sights.", "a.go:1"},
		{"a part of a name", "a.go", "package a\n\nfunc newSights() {}", "a.go:3"},
		{"the beginning of one", "a.go", "var sightOf int", "a.go:1"},
		{"a word of a message", "a.go", `log.Warn("lost sight of it")`, "a.go:1"},
		{"a document", "docs/a.md", "# Sight", "docs/a.md:1"},
		{"a name that is good English besides", "a.go", "var trouble int", "a.go:1"},
		{"in a comment", "a.go", "var x int // asks for trouble", ""},
		{"in a message", "a.go", `log.Warn("in trouble")`, ""},
		{"in a document", "a.md", "trouble", ""},
		{"several words", "a.go", "// f says that it is so.", "a.go:1"},
		{"a part of another word", "a.go", "// an insight and oversights", ""},
		{"a test", "a_test.go", "// sight", ""},
		{"test data", "testdata/a.md", "sight", ""},
		{"the page about them", keepsOldWords, "sight", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			err := run(&out, fstest.MapFS{c.file: {Data: []byte(c.text)}}, three, false)
			if (err != nil) != (c.want != "") || !strings.HasPrefix(out.String(), c.want) {
				t.Errorf("%v, prints %q, want %q", err, out.String(), c.want)
			}
		})
	}
}

func TestCounts(t *testing.T) {
	var out strings.Builder
	if err := run(&out, fstest.MapFS{"a.md": {Data: []byte("a sight\n\nsights")}}, three, true); err == nil || out.String() != "   2  sight\n   0  trouble\n   0  says that\n" {
		t.Errorf("%v, prints %q", err, out.String())
	}
}

func TestBadLineOfTheListIsNamed(t *testing.T) {
	if err := run(nil, fstest.MapFS{}, "sight, observation", false); err == nil || !strings.Contains(err.Error(), "words.txt:1") {
		t.Error(err)
	}
}

// TestList: the list itself can be read.
func TestList(t *testing.T) {
	if entries, err := parse(list); err != nil || len(entries) < 30 {
		t.Errorf("%d words, %v", len(entries), err)
	}
}
