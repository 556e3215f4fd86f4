package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// answer is a section of docs/answers.md: what a user does, and the command that answers.
type answer struct {
	question, does, asks string
	reads                []string
}

var fenced = regexp.MustCompile("(?s)```(sh|console)\n(.*?)```")

// documentedAnswers reads the page: the functions of its first part, and its sections.
func documentedAnswers(t *testing.T) (functions string, all []answer) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(harness.Root, "docs", "answers.md"))
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Split(string(text), "\n## ")
	functions = fenced.FindStringSubmatch(sections[0])[2]
	for _, s := range sections[1:] {
		question, _, _ := strings.Cut(s, "\n")
		a := answer{question: question}
		for _, block := range fenced.FindAllStringSubmatch(s, -1) {
			if block[1] == "sh" {
				a.does += block[2]
				continue
			}
			lines := strings.Split(strings.TrimSuffix(block[2], "\n"), "\n")
			a.asks, a.reads = strings.TrimPrefix(lines[0], "$ "), lines[1:]
		}
		if a.asks == "" || len(a.reads) == 0 {
			t.Fatalf("%q has no answer", question)
		}
		all = append(all, a)
	}
	if len(all) != 12 {
		t.Fatalf("the page has %d sections, not twelve", len(all))
	}
	return functions, all
}

// missing returns the first line that the output does not have; … stands for anything.
func (a answer) missing(out string) string {
	for _, line := range a.reads {
		pattern := "(?m)^" + strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*") + "$"
		if !regexp.MustCompile(pattern).MatchString(out) {
			return line
		}
	}
	return ""
}

// TestAnswers does what each section of docs/answers.md does, and reads the answer that it promises.
func TestAnswers(t *testing.T) {
	functions, all := documentedAnswers(t)
	for _, a := range all {
		t.Run(a.question, func(t *testing.T) {
			t.Parallel()
			u := open(t)
			file := filepath.Join(u.dir, "functions")
			if err := os.WriteFile(file, []byte(functions), 0o600); err != nil {
				t.Fatal(err)
			}
			u.env = append(u.env, "BASH_ENV="+file)
			u.succeeds("set -e\n" + a.does)
			harness.Until(t, timeout, a.question, func(context.Context) error {
				out, errOut, _ := u.enter(a.asks)
				if line := a.missing(out + errOut); line != "" {
					return fmt.Errorf("no line is %q in\n%s%s", line, out, errOut)
				}
				return nil
			})
		})
	}
}
