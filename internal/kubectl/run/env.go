package run

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// envName is the NAME of --env=NAME=VALUE.
func envName(e string) (string, error) {
	name, _, found := strings.Cut(e, "=")
	if !found {
		return "", fmt.Errorf("--env=%q has no value: write --env=NAME=VALUE", e)
	}
	return name, checkVariable(name, "--env")
}

// checkVariable refuses what cannot be the name of a variable.
func checkVariable(name, flag string) error {
	if len(validation.IsEnvVarName(name)) > 0 {
		return fmt.Errorf("%s: %q cannot be the name of a variable: write letters, digits and _, not beginning with a digit", flag, name)
	}
	return nil
}

// CheckEnv refuses flags --env=NAME=VALUE that have no value, a name that is none, or the same name twice.
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

// SetEnv gives all containers of a Pod the variables, which CheckEnv has seen, in place of those of the same names. They come
// first, so that the values of others may refer to them.
func SetEnv(p *corev1.PodSpec, env []string) {
	for _, containers := range [][]corev1.Container{p.InitContainers, p.Containers} {
		for i := range containers {
			var set []corev1.EnvVar
			for _, e := range env {
				name, value, _ := strings.Cut(e, "=")
				set = append(set, corev1.EnvVar{Name: name, Value: value})
			}
			others := slices.DeleteFunc(slices.Clone(containers[i].Env), func(v corev1.EnvVar) bool {
				return slices.ContainsFunc(set, func(s corev1.EnvVar) bool { return s.Name == v.Name })
			})
			containers[i].Env = slices.Concat(set, others)
		}
	}
}
