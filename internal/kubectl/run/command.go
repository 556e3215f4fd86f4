package run

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// shells are the programs that expand "$NAME" themselves.
var shells = []string{"sh", "bash", "dash", "ash", "zsh", "ksh", "busybox", "fish"}

// shell reports whether the command runs a shell, directly or through another program: timeout 60 sh -c '…'.
func (o *Options) shell() bool {
	return slices.ContainsFunc(o.Command, func(word string) bool { return slices.Contains(shells, path.Base(word)) })
}

// checkCommand refuses a whole command line in one word: no shell would split it, and no program has that name.
func (o *Options) checkCommand() error {
	if len(o.Command) == 0 {
		return nil
	}
	switch word := o.Command[0]; {
	case strings.TrimSpace(word) == "":
		return fmt.Errorf("the command is empty: write the program after --, as in -- echo hello")
	case len(o.Command) == 1 && strings.ContainsAny(word, " \t\n"):
		return fmt.Errorf("the command %q is one word, and no program has that name: write -- sh -c %s, where the image has a shell, or take it out of the quotes", word, quote(word))
	}
	return nil
}

// notes warns about commands that are valid, but often meant differently.
func (o *Options) notes(lists []list) (notes []string) {
	if o.shell() || len(o.Command) == 0 || len(lists) == 0 {
		return nil
	}
	all := strings.Join(append(slices.Clone(o.Command), o.Env...), " ")
	var keys []string
	mentioned := false
	for _, l := range lists {
		keys = append(keys, l.key)
		mentioned = mentioned || regexp.MustCompile(`\b`+regexp.QuoteMeta(l.key)+`\b`).MatchString(all)
		literal := regexp.MustCompile(`\$(` + regexp.QuoteMeta(l.key) + `\b|\{` + regexp.QuoteMeta(l.key) + `\})`)
		for _, arg := range o.Command[1:] {
			if found := literal.FindString(arg); found != "" {
				notes = append(notes, fmt.Sprintf("%s gets %q literally, because no shell runs: write '$(%s)' for its value", o.Command[0], found, l.key))
				break
			}
		}
	}
	if !mentioned {
		notes = append(notes, fmt.Sprintf("the command does not name %s, which %s finds in its environment. If you typed $%s, your own shell replaced it by nothing: type '$(%s)'",
			strings.Join(keys, ", "), o.Command[0], keys[0], keys[0]))
	}
	return notes
}

// quote quotes a word for a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
