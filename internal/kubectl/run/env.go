package run

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// envName returns the NAME of --env=NAME=VALUE.
func envName(e string) (string, error) {
	name, _, found := strings.Cut(e, "=")
	if !found {
		return "", fmt.Errorf("--env=%q has no value: write --env=NAME=VALUE", e)
	}
	return name, checkVariable(name, "--env")
}

// checkVariable refuses an invalid name of a variable.
func checkVariable(name, flag string) error {
	if len(validation.IsEnvVarName(name)) > 0 {
		return fmt.Errorf("%s: %q cannot be the name of a variable: write letters, digits and _, not beginning with a digit", flag, name)
	}
	return nil
}

// CheckEnv refuses --env flags without a value, with an invalid name, or with the same name twice.
func CheckEnv(env []string) error {
	seen := map[string]bool{}
	for _, e := range env {
		name, err := envName(e)
		switch {
		case err != nil:
			return err
		case seen[name]:
			return fmt.Errorf("--env defines the variable %s twice: leave one of them out", name)
		}
		seen[name] = true
	}
	return nil
}

// SetEnv sets the variables, which CheckEnv has checked, in all containers of a Pod. A variable that a container defines is
// replaced in its place, so that references between it and its neighbours stay valid; new variables come first, so that all
// others may refer to them.
func SetEnv(p *corev1.PodSpec, env []string) {
	for _, containers := range [][]corev1.Container{p.InitContainers, p.Containers} {
		for i := range containers {
			containers[i].Env = withEnv(containers[i].Env, env)
		}
	}
}

func withEnv(have []corev1.EnvVar, env []string) []corev1.EnvVar {
	var first []corev1.EnvVar
	have = slices.Clone(have)
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		is := func(v corev1.EnvVar) bool { return v.Name == name }
		at := slices.IndexFunc(have, is)
		if at < 0 {
			first = append(first, corev1.EnvVar{Name: name, Value: value})
			continue
		}
		have[at] = corev1.EnvVar{Name: name, Value: value}
		have = append(have[:at+1], slices.DeleteFunc(have[at+1:], is)...)
	}
	return slices.Concat(first, have)
}
