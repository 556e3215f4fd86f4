package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/finding"
)

// permissions checks every verb of the roles: the operator should run it as the program's own user.
func (i Inspection) permissions(ctx context.Context) []finding.Finding {
	const check = "api permissions"
	denied, asked, err := i.Denied(ctx)
	if err != nil {
		return []finding.Finding{finding.Worry(check, finding.Warn, "ask with kubectl auth can-i", "cannot be asked about: %v", err)}
	}
	advice := i.Grant
	if len(i.Namespaces) > 0 {
		advice = "bind its roles in each of --namespaces (deploy/namespaced), and run this as its service account"
	}
	if len(denied) == 0 {
		return []finding.Finding{finding.Good(check, "%d verbs asked about, all are allowed", asked)}
	}
	var all []finding.Finding
	for _, l := range slices.Sorted(maps.Keys(denied)) {
		all = append(all, finding.Worry(check, l, advice, "may not %s", strings.Join(denied[l], ", ")))
	}
	return all
}

// Denied asks the API server about every verb of the roles, in each configured namespace. It returns the denied ones, Fail for
// what Jobs need and Warn for what they can do without, and the number of questions.
func (i Inspection) Denied(ctx context.Context) (denied map[finding.Level][]string, asked int, err error) {
	var rules []rbacv1.PolicyRule
	for _, manifest := range i.Roles {
		role, err := deployedRules(manifest)
		if err != nil {
			return nil, 0, fmt.Errorf("the embedded role cannot be read, which is a bug: %w", err)
		}
		rules = append(rules, role...)
	}
	denied = map[finding.Level][]string{}
	known := map[authorizationv1.ResourceAttributes]bool{} // two roles may contain the same
	for a := range i.questions(rules) {
		if known[a] {
			continue
		}
		known[a] = true
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &a}}
		answer, err := i.Client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return nil, asked, err
		}
		if asked++; !answer.Status.Allowed {
			l := severity(a)
			denied[l] = append(denied[l], a.Verb+" "+resourceName(a))
		}
	}
	return denied, asked, nil
}

// severity returns the level of a denied verb: one that only ScheduledJobs need, or some admission plugin, may be missing on
// purpose.
func severity(a authorizationv1.ResourceAttributes) finding.Level {
	if a.Group == v1alpha1.GroupVersion.Group || a.Subresource == "finalizers" {
		return finding.Warn
	}
	return finding.Fail
}

func resourceName(a authorizationv1.ResourceAttributes) string {
	name := a.Resource
	if a.Subresource != "" {
		name += "/" + a.Subresource
	}
	if a.Group != "" {
		name += "." + a.Group
	}
	if a.Namespace != "" {
		name += " in " + a.Namespace
	}
	return name
}

// questions returns one question about each verb of the rules, in each configured namespace.
func (i Inspection) questions(rules []rbacv1.PolicyRule) iter.Seq[authorizationv1.ResourceAttributes] {
	return func(yield func(authorizationv1.ResourceAttributes) bool) {
		for _, namespace := range NamespacesOrAll(i.Namespaces) {
			for _, r := range rules {
				for _, a := range attributes(r) {
					if a.Namespace = namespace; !yield(a) {
						return
					}
				}
			}
		}
	}
}

// attributes returns the single questions that a rule answers.
func attributes(r rbacv1.PolicyRule) (all []authorizationv1.ResourceAttributes) {
	for _, group := range r.APIGroups {
		for _, resource := range r.Resources {
			resource, sub, _ := strings.Cut(resource, "/")
			for _, verb := range r.Verbs {
				all = append(all, authorizationv1.ResourceAttributes{Group: group, Resource: resource, Subresource: sub, Verb: verb})
			}
		}
	}
	return all
}

// deployedRules returns the rules of the only ClusterRole in a manifest.
func deployedRules(manifest []byte) ([]rbacv1.PolicyRule, error) {
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096); ; {
		var role rbacv1.ClusterRole
		err := d.Decode(&role)
		if errors.Is(err, io.EOF) {
			return nil, errors.New("it holds no ClusterRole")
		}
		if err != nil {
			return nil, err
		}
		if role.Kind == "ClusterRole" {
			return role.Rules, nil
		}
	}
}
