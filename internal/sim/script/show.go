package script

import (
	"fmt"
	"strings"

	"github.com/jobstream/jobstream/functions/effect"
)

func (s *Stage) conditions() string {
	var b strings.Builder
	for _, c := range s.api.List("", s.uid).Job.Status.Conditions {
		fmt.Fprintf(&b, "%s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	return b.String()
}

func (s *Stage) status() string {
	list := s.api.List("", s.uid)
	var b strings.Builder
	if list.Job == nil {
		b.WriteString("no Job\n")
	} else {
		fmt.Fprintln(&b, strings.TrimPrefix(effect.WriteJobStatus{Version: list.Job.Version, Status: list.Job.Status, FailedIndexExits: list.Job.FailedIndexExits}.String(), "WriteJobStatus "))
	}
	for _, p := range list.Pods {
		fmt.Fprintf(&b, "%s serial=%d %s held=%v deleting=%v\n", p.Name, p.Serial, p.Phase, p.Held, p.Deleting)
	}
	return b.String()
}
