package run

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"
)

// List is one --per-completion-env as the user typed it, with the content of its file if it names one.
type List struct {
	// Key is the name of the variable.
	Key string
	// Text is the list itself: the text after "KEY=", or the content of the file.
	Text string
	// File is the name of the file with the text; "" if the list was typed.
	File string
}

// list is a parsed List.
type list struct {
	key    string
	values []string
}

// EmptyValue is how a list writes an empty value.
const EmptyValue = `""`

// MaxParameters is the largest size of all lists together, in bytes, line ends included: the API server's limit for one ConfigMap
// (core/v1, MaxSecretSize). The annotation names one ConfigMap, so the lists cannot be split over several.
const MaxParameters = 1 << 20

// SplitKey splits "KEY=VALUES".
func SplitKey(arg string) (key, values string, err error) {
	key, values, found := strings.Cut(arg, "=")
	if !found || key == "" {
		return "", "", fmt.Errorf(`--per-completion-env=%q names no variable: write KEY="a b c" or KEY=@FILE`, arg)
	}
	if len(validation.IsEnvVarName(key)) > 0 {
		return "", "", fmt.Errorf("--per-completion-env: %q cannot be the name of a variable: write letters, digits and _, not beginning with a digit", key)
	}
	return key, values, nil
}

func readLists(given []List) ([]list, error) {
	var lists []list
	for _, g := range given {
		values, err := g.split()
		if err != nil {
			return nil, err
		}
		for _, l := range lists {
			if l.key == g.Key {
				return nil, fmt.Errorf("--per-completion-env=%s=… is given twice: give the second list another name", g.Key)
			}
		}
		if len(lists) > 0 && len(values) != len(lists[0].values) {
			return nil, fmt.Errorf("the lists differ in length: %s has %s, %s has %s; each index takes one value of each list, so write as many",
				lists[0].key, countOf(len(lists[0].values)), g.Key, countOf(len(values)))
		}
		lists = append(lists, list{g.Key, values})
	}
	size := 0
	for _, l := range lists {
		size += len(l.lines())
	}
	if size > MaxParameters {
		parts := (size + MaxParameters - 1) / MaxParameters
		return nil, fmt.Errorf("the lists have %d bytes, and a ConfigMap holds %d: run %d Jobs with a part of the lists each, or put the lists where the Pods can read them, and use --completions=%d with --completion-index-var-name",
			size, MaxParameters, parts, len(lists[0].values))
	}
	return lists, nil
}

// split splits the text into values: the words of a single line, or else the lines. So "$(cat FILE)" and @FILE mean the same, and
// a file of command lines has one on each line.
func (g List) split() ([]string, error) {
	text := strings.ReplaceAll(strings.TrimRight(g.Text, "\r\n"), "\r\n", "\n")
	values, byLine := strings.Split(text, "\n"), true
	if len(values) == 1 {
		values, byLine = strings.Fields(text), false
	}
	if len(values) == 0 {
		if g.File != "" {
			return nil, fmt.Errorf("the list %s is empty: the file %s has no values; write one on each line", g.Key, g.File)
		}
		return nil, fmt.Errorf(`the list %s is empty: write --per-completion-env=%s="a b c" or --per-completion-env=%s=@FILE`, g.Key, g.Key, g.Key)
	}
	for i, v := range values {
		if problem := badValue(v); problem != "" {
			return nil, fmt.Errorf("the list %s: %s %s", g.Key, g.place(i, byLine), problem)
		}
		if v == EmptyValue {
			values[i] = ""
		}
	}
	return values, nil
}

func (g List) place(i int, byLine bool) string {
	switch {
	case byLine && g.File != "":
		return fmt.Sprintf("line %d of %s", i+1, g.File)
	case byLine:
		return fmt.Sprintf("line %d", i+1)
	}
	return fmt.Sprintf("value %d", i+1)
}

// badValue describes what is wrong with a value, and how to write it.
func badValue(v string) string {
	switch {
	case strings.TrimSpace(v) == "":
		return `is empty: remove it, or write ` + EmptyValue + ` for an empty value`
	case !utf8.ValidString(v):
		return "is not UTF-8: save the file as UTF-8"
	case strings.ContainsFunc(v, func(r rune) bool { return r != '\t' && unicode.IsControl(r) }):
		return fmt.Sprintf("has a control character: %q", v)
	}
	return ""
}

// lines returns the list in the form that the ConfigMap holds. Each value ends with a newline, so that the last may be empty.
func (l list) lines() string { return strings.Join(l.values, "\n") + "\n" }

func countOf(n int) string {
	if n == 1 {
		return "1 value"
	}
	return fmt.Sprintf("%d values", n)
}

func isBlankOrControl(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
