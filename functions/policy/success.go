package policy

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/functions/intervals"
)

// Success returns the message of the first rule of a successPolicy that the completed indexes satisfy, as upstream writes it
// (Kubernetes 1.36, matchSuccessPolicy). Indexes at or above completions do not exist, so a rule that names only such ones is
// never satisfied. A nil policy has no rules.
func Success(policy *batchv1.SuccessPolicy, completions int, completed intervals.Set) (message string, ok bool) {
	if policy == nil || completed.Len() == 0 {
		return "", false
	}
	for i, rule := range policy.Rules {
		if satisfied(rule, completions, completed) {
			return fmt.Sprintf("Matched rules at index %d", i), true
		}
	}
	return "", false
}

func satisfied(rule batchv1.SuccessPolicyRule, completions int, completed intervals.Set) bool {
	if rule.SucceededIndexes == nil {
		return rule.SucceededCount != nil && completed.Len() >= int(*rule.SucceededCount)
	}
	named, err := intervals.Parse(*rule.SucceededIndexes)
	if err != nil { // the API server rejects such a rule
		return false
	}
	if named = named.Below(completions); named.Len() == 0 {
		return false
	}
	met := named.Intersect(completed).Len()
	return met == named.Len() || rule.SucceededCount != nil && met >= int(*rule.SucceededCount)
}
