package pod

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Parameters are the lists of per-completion values (proposal indexed-job.md, "multiple substitution"): one list for each
// variable, all of the same length.
//
//	data:                       index 0: FRUIT=apple  SIZE=1
//	  FRUIT: |                  index 1: FRUIT=banana SIZE=2
//	    apple
//	    banana
//	  SIZE: "1\n2"
type Parameters struct {
	names  []string
	values map[string][]string
	count  int
}

// ReadParameters reads the lists from a ConfigMap: each key is a variable, each line of its value belongs to one index, and a
// last empty line does not count. The error names what the user has to change: the ConfigMap is not immutable, is empty, or holds
// binary data; a key is not the name of a variable; or the lists have different lengths.
func ReadParameters(c *corev1.ConfigMap) (Parameters, error) {
	switch {
	case c.Immutable == nil || !*c.Immutable:
		return Parameters{}, errors.New("it is not immutable: Pods of one Job could get values of two versions; set immutable: true")
	case len(c.BinaryData) > 0:
		return Parameters{}, errors.New("it has binaryData: write one line per index into data")
	case len(c.Data) == 0:
		return Parameters{}, errors.New("it has no data: write one key per variable, with one line per index")
	}
	p := Parameters{names: slices.Sorted(maps.Keys(c.Data)), values: map[string][]string{}}
	for i, name := range p.names {
		if problems := validation.IsEnvVarName(name); len(problems) > 0 {
			return Parameters{}, fmt.Errorf("its key %q is not the name of an environment variable", name)
		}
		list := strings.Split(strings.TrimSuffix(c.Data[name], "\n"), "\n")
		if i > 0 && len(list) != p.count {
			return Parameters{}, fmt.Errorf("its lists differ in length: %s has %d values, %s has %d", p.names[0], p.count, name, len(list))
		}
		p.values[name], p.count = list, len(list)
	}
	return p, nil
}

// Count returns the length of the lists.
func (p Parameters) Count() int { return p.count }

// Values returns the values of one index by variable, nil if there are none for it: those of the first variables by name, at most as many
// as most.
func (p Parameters) Values(index, most int) map[string]string {
	if index < 0 || index >= p.count {
		return nil
	}
	out := map[string]string{}
	for _, name := range p.names[:min(most, len(p.names))] {
		out[name] = p.values[name][index]
	}
	return out
}

// At returns the variables of one index, 0 to Count-1, sorted by name. A dollar sign in a value stands for itself. At fails if
// there is no value for the index.
func (p Parameters) At(index int) ([]corev1.EnvVar, error) {
	if index < 0 || index >= p.count {
		return nil, fmt.Errorf("it has %d values for each variable, none for index %d", p.count, index)
	}
	var out []corev1.EnvVar
	for _, name := range p.names {
		// "$(X)" in a value would be expanded by the kubelet, "$$" stands for one "$" (core/v1, EnvVar.Value).
		out = append(out, corev1.EnvVar{Name: name, Value: strings.ReplaceAll(p.values[name][index], "$", "$$")})
	}
	return out, nil
}
