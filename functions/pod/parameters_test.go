package pod

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestReadParameters(t *testing.T) {
	yes := true
	tests := []struct {
		name    string
		change  func(*corev1.ConfigMap)
		problem string
		count   int
	}{
		{"two lists", func(*corev1.ConfigMap) {}, "", 3},
		{"mutable", func(c *corev1.ConfigMap) { c.Immutable = nil }, "set immutable: true", 0},
		{"empty", func(c *corev1.ConfigMap) { c.Data = nil }, "no data", 0},
		{"binary", func(c *corev1.ConfigMap) { c.BinaryData = map[string][]byte{"X": nil} }, "binaryData", 0},
		{"a key that is no name", func(c *corev1.ConfigMap) { c.Data["a b"] = "1\n2\n3" }, `"a b" is not the name`, 0},
		{"lists of different length", func(c *corev1.ConfigMap) { c.Data["Z"] = "1\n2" }, "FRUIT has 3 values, Z has 2", 0},
		{"an empty value at the end", func(c *corev1.ConfigMap) { c.Data = map[string]string{"A": "x\n\n"} }, "", 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := &corev1.ConfigMap{Immutable: &yes, Data: map[string]string{"FRUIT": "apple\nbanana\ncherry\n", "SIZE": "1\n2\n$(FRUIT)"}}
			test.change(c)
			p, err := ReadParameters(c)
			if test.problem == "" && err != nil || test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)) {
				t.Fatalf("got %v, want %q", err, test.problem)
			}
			if p.Count() != test.count {
				t.Errorf("got %d values, want %d", p.Count(), test.count)
			}
		})
	}
}

// TestValuesOfAnIndex: none beside the lists, and at most as many variables as are asked for.
func TestValuesOfAnIndex(t *testing.T) {
	yes := true
	p, err := ReadParameters(&corev1.ConfigMap{Immutable: &yes, Data: map[string]string{"FRUIT": "apple\nbanana", "SIZE": "1\n2"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		index, most int
		want        map[string]string
	}{
		{-1, 2, nil},
		{0, 2, map[string]string{"FRUIT": "apple", "SIZE": "1"}},
		{1, 1, map[string]string{"FRUIT": "banana"}},
		{1, 3, map[string]string{"FRUIT": "banana", "SIZE": "2"}},
		{2, 2, nil},
	} {
		if got := p.Values(test.index, test.most); !maps.Equal(got, test.want) {
			t.Errorf("index %d, at most %d: %v, want %v", test.index, test.most, got, test.want)
		}
	}
}

// TestParametersComeFirst: "$(FRUIT)" expands in later variables and args, and not inside of a value; a container's own variable
// of the same name keeps its value.
func TestParametersComeFirst(t *testing.T) {
	yes := true
	c := &corev1.ConfigMap{Immutable: &yes, Data: map[string]string{"FRUIT": "apple\nba$(SIZE)", "SIZE": "1\n2"}}
	p, err := ReadParameters(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, index := range []int{-1, 2} {
		if _, err := p.At(index); err == nil || !strings.Contains(err.Error(), fmt.Sprint("none for index ", index)) {
			t.Errorf("index %d: %v", index, err)
		}
	}
	if env, err := p.At(0); err != nil || env[0].Value != "apple" {
		t.Errorf("index 0: %v, %v", env, err)
	}
	env, err := p.At(1)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Env: []corev1.EnvVar{{Name: "SIZE", Value: "mine"}}}}}}
	giveFirst(pod, env)
	got := pod.Spec.Containers[0].Env
	if len(got) != 2 || got[0] != (corev1.EnvVar{Name: "FRUIT", Value: "ba$$(SIZE)"}) || got[1].Value != "mine" {
		t.Errorf("got %+v", got)
	}
}
