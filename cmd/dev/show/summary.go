package show

import (
	"fmt"
	"strings"
	"text/tabwriter"

	batchv1 "k8s.io/api/batch/v1"
)

// Summary returns a table of how all Jobs ended.
func (s *Story) Summary() []string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "JOB\tRESULT\tPODS\tSUCCEEDED\tFAILED\tTOOK\tLAST POD TO END\tEXPECTED")
	for _, k := range s.Jobs {
		took, latency := "-", "-"
		if !k.Ended.IsZero() {
			took = span(k.Ended.Sub(k.Applied))
		}
		if d, ok := k.Latency(); ok {
			latency = span(d)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s\n", k.Name, k.result(), len(k.pods), k.Succeeded, k.Failed, took, latency, k.judgement())
	}
	w.Flush()
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

func (k *Job) result() string {
	switch k.Result {
	case "":
		return "not ended"
	case batchv1.JobComplete:
		return "Complete"
	}
	return fmt.Sprintf("%s (%s)", k.Result, k.Reason)
}

func (k *Job) judgement() string {
	switch {
	case k.Result != k.Wants:
		return fmt.Sprintf("NO: not %s", k.Wants)
	case !k.agrees():
		return "NO: differs from JobFinish"
	}
	return "yes"
}
