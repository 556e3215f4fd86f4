package processnode

import "strings"

// expand replaces $(NAME) by the value of the variable, as Kubernetes does in env, command and args: an unknown name
// stays as it is written, $$ is one $, so $$(NAME) is the text $(NAME).
func expand(s string, lookup func(string) (string, bool)) string {
	if !strings.Contains(s, "$") {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		at := strings.IndexByte(s, '$')
		if at < 0 || at+1 == len(s) {
			break
		}
		b.WriteString(s[:at])
		s = s[at:]
		switch s[1] {
		case '$':
			b.WriteByte('$')
			s = s[2:]
		case '(':
			end := strings.IndexByte(s, ')')
			if end < 0 {
				b.WriteString("$(")
				s = s[2:]
				continue
			}
			if v, ok := lookup(s[2:end]); ok {
				b.WriteString(v)
			} else {
				b.WriteString(s[:end+1])
			}
			s = s[end+1:]
		default:
			b.WriteByte('$')
			s = s[1:]
		}
	}
	return b.String() + s
}

// expandAll expands every string of a command or its arguments.
func expandAll(list []string, env environment) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = expand(s, env.lookup)
	}
	return out
}
