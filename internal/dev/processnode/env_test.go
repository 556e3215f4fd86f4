package processnode

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// The cases are those of the Kubernetes expansion specification.
func TestExpand(t *testing.T) {
	vars := map[string]string{"VAR_A": "A", "VAR_B": "B", "VAR_REF": "$(VAR_A)", "VAR_EMPTY": ""}
	lookup := func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
	for in, want := range map[string]string{
		"":                              "",
		"plain":                         "plain",
		"$(VAR_A)":                      "A",
		"___$(VAR_B)___":                "___B___",
		"$(VAR_REF)":                    "$(VAR_A)",
		"$$(VAR_A)_$(VAR_A)":            "$(VAR_A)_A",
		"$$$(VAR_A)":                    "$A",
		"$$$$(VAR_A)":                   "$$(VAR_A)",
		"$$$$$(VAR_A)":                  "$$A",
		"foo$(VAR_EMPTY)bar":            "foobar",
		"$(VAR_A)$(VAR_B)":              "AB",
		"$(MISSING)":                    "$(MISSING)",
		"$(VAR_A":                       "$(VAR_A",
		"$VAR_A":                        "$VAR_A",
		"$":                             "$",
		"$$":                            "$",
		"a$":                            "a$",
		"$x$(VAR_A)":                    "$xA",
		"${VAR_A}":                      "${VAR_A}",
		"$(VAR_A$(VAR_B)":               "$(VAR_A$(VAR_B)",
		"$?_boo_$!":                     "$?_boo_$!",
		"--$(VAR_A),$(MISSING)--$()ü$ü": "--A,$(MISSING)--$()ü$ü",
	} {
		if got := expand(in, lookup); got != want {
			t.Errorf("expand(%q) is %q and not %q", in, got, want)
		}
	}
}

// shelf is a cluster's ConfigMaps and Secrets by name.
type shelf map[string]map[string]string

var errDown = errors.New("connection refused")

func (s shelf) get(kind, name string) (map[string]string, error) {
	if name == "down" {
		return nil, errDown
	}
	if data, ok := s[kind+"/"+name]; ok {
		return data, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: kind}, name)
}

func (s shelf) configMap(_ context.Context, _, name string) (*v1.ConfigMap, error) {
	data, err := s.get("configmaps", name)
	return &v1.ConfigMap{Data: data}, err
}

func (s shelf) secret(_ context.Context, _, name string) (*v1.Secret, error) {
	data, err := s.get("secrets", name)
	out := &v1.Secret{Data: map[string][]byte{}}
	for k, v := range data {
		out.Data[k] = []byte(v)
	}
	return out, err
}

func fieldRef(path string) *v1.EnvVarSource {
	return &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: path}}
}

func resourceRef(r, divisor string) *v1.EnvVarSource {
	ref := &v1.ResourceFieldSelector{Resource: r}
	if divisor != "" {
		ref.Divisor = resource.MustParse(divisor)
	}
	return &v1.EnvVarSource{ResourceFieldRef: ref}
}

func mapRef(name, key string, optional bool) *v1.EnvVarSource {
	return &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{
		LocalObjectReference: v1.LocalObjectReference{Name: name}, Key: key, Optional: ptr.To(optional),
	}}
}

func testResolver() resolver {
	return resolver{
		ip: "127.0.0.1", capacity: v1.ResourceList{v1.ResourceCPU: resource.MustParse("2")},
		objects: shelf{"configmaps/cm": {"b": "2", "a": "1"}, "secrets/s": {"key": "hush"}},
		pod: &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: "p", Namespace: "ns", UID: "u-1",
				Labels: map[string]string{"app": "x"}, Annotations: map[string]string{"example.com/index": "7"},
			},
			Spec: v1.PodSpec{NodeName: "n", ServiceAccountName: "sa"},
		},
	}
}

func TestEnvironment(t *testing.T) {
	c := &v1.Container{
		EnvFrom: []v1.EnvFromSource{
			{Prefix: "CM_", ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "cm"}}},
			{SecretRef: &v1.SecretEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "s"}}},
			{SecretRef: &v1.SecretEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "none"}, Optional: ptr.To(true)}},
		},
		Env: []v1.EnvVar{
			{Name: "NAME", ValueFrom: fieldRef("metadata.name")}, {Name: "NS", ValueFrom: fieldRef("metadata.namespace")},
			{Name: "UID", ValueFrom: fieldRef("metadata.uid")}, {Name: "NODE", ValueFrom: fieldRef("spec.nodeName")},
			{Name: "SA", ValueFrom: fieldRef("spec.serviceAccountName")}, {Name: "IP", ValueFrom: fieldRef("status.podIP")},
			{Name: "APP", ValueFrom: fieldRef("metadata.labels['app']")}, {Name: "NOLABEL", ValueFrom: fieldRef("metadata.labels['no']")},
			{Name: "INDEX", ValueFrom: fieldRef("metadata.annotations['example.com/index']")},
			{Name: "KEY", ValueFrom: mapRef("cm", "a", false)}, {Name: "NOKEY", ValueFrom: mapRef("cm", "z", true)},
			{Name: "CPU", ValueFrom: resourceRef("limits.cpu", "")}, {Name: "MILLI", ValueFrom: resourceRef("requests.cpu", "1m")},
			{Name: "MIB", ValueFrom: resourceRef("limits.memory", "1Mi")},
			{Name: "JOINED", Value: "$(NAME)-$(INDEX)-$(LATER)-$(CM_a)"}, {Name: "LATER", Value: "x"}, {Name: "NS", Value: "$(NS)!"},
		},
		Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("250m")},
			Limits:   v1.ResourceList{v1.ResourceMemory: resource.MustParse("100Mi")},
		},
	}
	env, err := testResolver().environment(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	want := "CM_a=1 CM_b=2 key=hush NAME=p NS=ns! UID=u-1 NODE=n SA=sa IP=127.0.0.1 APP=x NOLABEL= INDEX=7 KEY=1 " +
		"CPU=2 MILLI=250 MIB=100 JOINED=p-7-$(LATER)-1 LATER=x"
	if got := strings.Join(env.list(), " "); got != want {
		t.Errorf("environment is\n%s\nand not\n%s", got, want)
	}
}

func TestEnvironmentErrors(t *testing.T) {
	for want, from := range map[string]*v1.EnvVarSource{
		`env X: configmaps "none" not found`:            mapRef("none", "a", false),
		"env X: couldn't find key z in ConfigMap ns/cm": mapRef("cm", "z", false),
		"env X: connection refused":                     mapRef("down", "a", true), // optional forgives what is missing only
		"env X: field spec.x is not offered":            fieldRef("spec.x"),
		"env X: resource cpu is not known":              resourceRef("cpu", ""),
		"env X: this kind of valueFrom":                 {},
	} {
		_, err := testResolver().environment(t.Context(), &v1.Container{Env: []v1.EnvVar{{Name: "X", ValueFrom: from}}})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error is %q and not %q", fmt.Sprint(err), want)
		}
	}
}
