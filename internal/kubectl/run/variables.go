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

// indexVariable is what Kubernetes itself calls the index in the environment of an Indexed Job's containers.
const indexVariable = "JOB_COMPLETION_INDEX"

// env are the variables that stand in the Pod template. Those of the lists come before them when a Pod is made, so that
// "$(FRUIT)" works in a value, too.
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

// checkVariables refuses names that are none, that two flags define, and those in the command that nothing defines.
func (o *Options) checkVariables(lists []list) error {
	from := map[string]string{} // the flag by which a variable is defined
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

// reference is "$(NAME)", which the kubelet replaces by the variable's value; "$$(NAME)" is the text.
var reference = regexp.MustCompile(`\$+\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)`)

// checkReferences refuses "$(NAME)" in a command without a shell where no variable has that name: the kubelet would leave it
// as it is. In a shell it may be a command.
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

// fromKubernetes says that containers have the variable though no flag defines it: the index, jobstream's trace, and the
// addresses of Services (core/v1, enableServiceLinks).
func (o *Options) fromKubernetes(name string) bool {
	return name == indexVariable && o.Completions != nil || name == "TRACEPARENT" ||
		strings.Contains(name, "_SERVICE_") || strings.Contains(name, "_PORT")
}
