package run

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"
)

// List is one --per-completion-env as it was typed, with what was read where a file was named.
type List struct {
	// Key is the name of the variable.
	Key string
	// Text is the list itself: what stands behind "KEY=", or what the file holds.
	Text string
	// File is the name of the file that the text is from; "" where it was typed.
	File string
}

// list is a list that has been read.
type list struct {
	key    string
	values []string
}

// EmptyValue is how a list writes the value that has no characters.
const EmptyValue = `""`

// MaxParameters is how many bytes the values of all lists may have together, line ends included: what the API server takes
// in one ConfigMap (core/v1, MaxSecretSize). The annotation names one ConfigMap, so the lists cannot be split over several.
const MaxParameters = 1 << 20

// SplitKey takes "KEY=VALUES" apart.
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
				return nil, fmt.Errorf("--per-completion-env=%s=… stands there twice: give the second list another name", g.Key)
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

// split makes values of the text: of one line the words between blanks, of more lines the lines. So "$(cat FILE)" and @FILE
// mean the same, and a file of command lines has one on each.
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

// badValue says what is wrong with a value, and how to write what was meant.
func badValue(v string) string {
	switch {
	case strings.TrimSpace(v) == "":
		return `is empty: take it out, or write ` + EmptyValue + ` where the value is to have no characters`
	case !utf8.ValidString(v):
		return "is not UTF-8: save the file as UTF-8"
	case strings.ContainsFunc(v, func(r rune) bool { return r != '\t' && unicode.IsControl(r) }):
		return fmt.Sprintf("has a control character: %q", v)
	}
	return ""
}

// lines is the list as the ConfigMap holds it. The last value ends with a line, too, so that it may be empty.
func (l list) lines() string { return strings.Join(l.values, "\n") + "\n" }

func countOf(n int) string {
	if n == 1 {
		return "1 value"
	}
	return fmt.Sprintf("%d values", n)
}

func isBlankOrControl(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
