package job

import (
	"fmt"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// seeParameters remembers for how many completions there are values. Too few count as a refusal: a user has to change the
// ConfigMap or the Job, and until then it is read again with increasing delays.
func seeParameters(s State, e events.ParametersObserved) State {
	if e.Name != s.Job.Options.Parameters {
		return s
	}
	s.Parameters = e.Count
	if s.haveParameters() {
		s.accept(effect.KindReadParameters, "")
	} else {
		s.Waits.Refuse(events.EffectRefused{Effect: effect.KindReadParameters, Reason: "TooFewValues", Message: s.shortage(), At: e.At})
	}
	return s
}

// haveParameters reports whether the known values cover every index of the Job.
func (s State) haveParameters() bool {
	return s.Job.Options.Parameters == "" || s.Parameters >= completions(s.Job)
}

// shortage returns what a user has to change if there are too few values.
func (s State) shortage() string {
	return fmt.Sprintf("the ConfigMap %s of the annotation %s has values for %d completions, the Job has %d: no Pod is started",
		s.Job.Options.Parameters, v1alpha1.PerCompletionEnvAnnotation, s.Parameters, completions(s.Job))
}
