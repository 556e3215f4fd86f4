package doctor

import (
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/finding"
)

// need is one permission that a command requires. Resource may have a subresource after a slash.
type need struct{ verb, group, resource string }

func (n need) String() string { return n.verb + " " + n.resource }

// needs returns a need for each verb on the resource.
func needs(group, resource string, verbs ...string) (all []need) {
	for _, verb := range verbs {
		all = append(all, need{verb, group, resource})
	}
	return all
}

func jobs(verbs ...string) []need { return needs("batch", "jobs", verbs...) }
func schedules(verbs ...string) []need {
	return needs(v1alpha1.Group, v1alpha1.ScheduledJobResource, verbs...)
}
func configMaps(verbs ...string) []need { return needs("", "configmaps", verbs...) }
func pods(verbs ...string) []need       { return needs("", "pods", verbs...) }

// commands lists the commands with the permissions that each requires; docs/kubectl.md has the same table.
var commands = []struct {
	name  string
	needs []need
	// schedulesOnly reports whether the command is for ScheduledJobs only.
	schedulesOnly bool
}{
	{"jobstream alone", slices.Concat(jobs("list"), schedules("list")), false},
	{"run", jobs("create"), false},
	{"run --per-completion-env", slices.Concat(jobs("create", "patch", "delete"), configMaps("create")), false},
	{"run --run-at", schedules("create"), true},
	{"wait, watch, run --wait", jobs("list", "watch"), false},
	{"logs, run --logs", slices.Concat(jobs("get", "list", "watch"), pods("list", "watch"), needs("", "pods/log", "get")), false},
	{"next", schedules("get"), true},
	{"list", schedules("list"), true},
	{"history", slices.Concat(schedules("get"), jobs("list")), true},
	{"why", slices.Concat(jobs("get"), schedules("get")), false}, // without list on Pods and Events it reports that causes may be missing
	{"trigger", slices.Concat(schedules("get"), jobs("create")), true},
	{"backfill", slices.Concat(schedules("get"), jobs("get", "create", "list", "watch")), true},
	{"suspend, resume", slices.Concat(jobs("get", "list", "patch"), schedules("get", "list", "patch")), false},
	{"stop", slices.Concat(jobs("get", "list"), needs("batch", "jobs/status", "patch")), false},
	{"rerun", slices.Concat(jobs("get", "create", "patch", "delete"), configMaps("get", "create")), false},
	{"decisions, replay", slices.Concat(jobs("get"), schedules("get")), false}, // and a user of NATS
}

// Access reports the commands that the user's permissions do not suffice for. allowed reports whether the user may do what the
// attributes describe, or returns an error if that cannot be found out. With scheduled false, the cluster has no ScheduledJobs,
// and Access leaves out the permissions on them.
func Access(namespace string, scheduled bool, allowed func(authorizationv1.ResourceAttributes) (bool, error)) (all []finding.Finding) {
	const check = "permissions"
	const advice = "ask an administrator for a Role with these permissions, if you want to use the command"
	known := map[need]bool{}
	var may []string
	for _, c := range commands {
		if c.schedulesOnly && !scheduled {
			continue
		}
		var missing []string
		for _, n := range c.needs {
			if !scheduled && n.group == v1alpha1.Group {
				continue
			}
			yes, seen := known[n]
			if !seen {
				var err error
				if yes, err = allowed(n.attributes(namespace)); err != nil {
					return []finding.Finding{finding.Worry(check, finding.Warn, "ask with: kubectl auth can-i --list -n "+namespace, "cannot be checked: %v", err)}
				}
				known[n] = yes
			}
			if !yes {
				missing = append(missing, n.String())
			}
		}
		if len(missing) == 0 {
			may = append(may, c.name)
		} else {
			all = append(all, finding.Worry(check, finding.Warn, advice, "%s: in the namespace %s you may not %s", c.name, namespace, strings.Join(missing, ", ")))
		}
	}
	if len(may) > 0 {
		all = append([]finding.Finding{finding.Good(check, "in the namespace %s you may %s", namespace, strings.Join(may, "; "))}, all...)
	}
	return all
}

func (n need) attributes(namespace string) authorizationv1.ResourceAttributes {
	resource, sub, _ := strings.Cut(n.resource, "/")
	return authorizationv1.ResourceAttributes{Namespace: namespace, Verb: n.verb, Group: n.group, Resource: resource, Subresource: sub}
}

// Granted reports whether one of the rules allows the request. A rule with resource names does not: it covers only these objects.
func Granted(rules []authorizationv1.ResourceRule, a authorizationv1.ResourceAttributes) bool {
	resources := []string{"*", a.Resource}
	if a.Subresource != "" {
		resources = []string{"*", a.Resource + "/" + a.Subresource, "*/" + a.Subresource}
	}
	return slices.ContainsFunc(rules, func(r authorizationv1.ResourceRule) bool {
		return len(r.ResourceNames) == 0 && has(r.Verbs, "*", a.Verb) && has(r.APIGroups, "*", a.Group) && has(r.Resources, resources...)
	})
}

// has reports whether the list has one of the words.
func has(list []string, words ...string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return slices.Contains(words, s) })
}
