package run

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// indexVariable is the environment variable in which Kubernetes passes the index to the containers of an Indexed Job.
const indexVariable = "JOB_COMPLETION_INDEX"

// env returns the variables of the Pod template. The reconciler puts those of the lists before them, so that "$(FRUIT)" works in
// a value, too.
func (o *Options) env() []corev1.EnvVar {
	var out []corev1.EnvVar
	if o.IndexVariable != "" {
		out = append(out, corev1.EnvVar{Name: o.IndexVariable, ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + batchv1.JobCompletionIndexAnnotation + "']"}}})
	}
	for _, e := range o.Env {
		name, value, _ := strings.Cut(e, "=")
		out = append(out, corev1.EnvVar{Name: name, Value: value})
	}
	return out
}

// checkVariables refuses invalid names, names that two flags define, and references in the command to undefined names.
func (o *Options) checkVariables(lists []list) error {
	from := map[string]string{} // the flag that defines each variable
	define := func(name, flag string) error {
		if err := checkVariable(name, flag); err != nil {
			return err
		}
		if before, taken := from[name]; taken {
			return fmt.Errorf("%s and %s both define the variable %s: choose another name for one of them", before, flag, name)
		}
		from[name] = flag
		return nil
	}
	for _, l := range lists {
		if err := define(l.key, "--per-completion-env"); err != nil {
			return err
		}
	}
	if o.IndexVariable != "" {
		if err := define(o.IndexVariable, "--completion-index-var-name"); err != nil {
			return err
		}
	}
	for _, e := range o.Env {
		name, err := envName(e)
		if err != nil {
			return err
		}
		if err := define(name, "--env"); err != nil {
			return err
		}
	}
	return o.checkReferences(from)
}

// reference matches "$(NAME)", which the kubelet replaces by the variable's value; "$$(NAME)" stands for the text itself.
var reference = regexp.MustCompile(`\$+\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)`)

// checkReferences refuses "$(NAME)" in a command without a shell if no variable has that name: the kubelet would leave it
// unchanged. In a shell it may be a command substitution.
func (o *Options) checkReferences(defined map[string]string) error {
	if o.shell() {
		return nil
	}
	for _, arg := range o.Command {
		for _, match := range reference.FindAllStringSubmatch(arg, -1) {
			dollars, name := strings.Count(match[0], "$"), match[1]
			if _, known := defined[name]; known || dollars%2 == 0 || o.fromKubernetes(name) {
				continue
			}
			known := slices.Sorted(maps.Keys(defined))
			if len(known) == 0 {
				return fmt.Errorf("no variable is called %s, which the command names in %q: add --per-completion-env=%s=… or --env=%s=…, or write $$(%s) where you mean the text", name, arg, name, name, name)
			}
			return fmt.Errorf("no variable is called %s, which the command names in %q: there is %s; write one of them, or $$(%s) where you mean the text", name, arg, strings.Join(known, ", "), name)
		}
	}
	return nil
}

// fromKubernetes reports whether containers have the variable although no flag defines it: the index, jobstream's trace, and the
// addresses of Services (core/v1, enableServiceLinks).
func (o *Options) fromKubernetes(name string) bool {
	return name == indexVariable && o.Completions != nil || name == "TRACEPARENT" ||
		strings.Contains(name, "_SERVICE_") || strings.Contains(name, "_PORT")
}
