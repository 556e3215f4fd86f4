package processnode

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// environment is the env of one container, in order, each name once.
type environment struct {
	names  []string
	values map[string]string
}

func (e *environment) set(name, value string) {
	if e.values == nil {
		e.values = map[string]string{}
	}
	if _, ok := e.values[name]; !ok {
		e.names = append(e.names, name)
	}
	e.values[name] = value
}

func (e *environment) setDefault(name, value string) {
	if _, ok := e.values[name]; !ok {
		e.set(name, value)
	}
}

func (e environment) lookup(name string) (string, bool) {
	v, ok := e.values[name]
	return v, ok
}

// list renders the environment as exec takes it.
func (e environment) list() []string {
	out := make([]string, 0, len(e.names))
	for _, n := range e.names {
		out = append(out, n+"="+e.values[n])
	}
	return out
}

// objects reads what a Pod refers to. The implementation asks the API server; tests use maps.
type objects interface {
	configMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error)
	secret(ctx context.Context, namespace, name string) (*v1.Secret, error)
}

// resolver knows what the env and the volumes of one Pod may refer to.
type resolver struct {
	pod     *v1.Pod
	ip      string
	objects objects
	// capacity stands in for a limit that a container does not set.
	capacity v1.ResourceList
}

// environment is what the Pod declares for the container: envFrom first, then env, where a value may use the names
// before it. Nothing comes from the node's own environment.
func (r resolver) environment(ctx context.Context, c *v1.Container) (environment, error) {
	var env environment
	for _, from := range c.EnvFrom {
		if err := r.addAll(ctx, &env, from); err != nil {
			return env, err
		}
	}
	for _, v := range c.Env {
		if v.ValueFrom == nil {
			env.set(v.Name, expand(v.Value, env.lookup))
			continue
		}
		value, ok, err := r.value(ctx, c, v.ValueFrom)
		if err != nil {
			return env, fmt.Errorf("env %s: %w", v.Name, err)
		}
		if ok {
			env.set(v.Name, value)
		}
	}
	return env, nil
}

// addAll adds every key of a ConfigMap or Secret, in the order of their names.
func (r resolver) addAll(ctx context.Context, env *environment, from v1.EnvFromSource) error {
	data := map[string]string{}
	switch {
	case from.ConfigMapRef != nil:
		cm, err := r.objects.configMap(ctx, r.pod.Namespace, from.ConfigMapRef.Name)
		if err != nil {
			return unless(optional(from.ConfigMapRef.Optional), err)
		}
		data = cm.Data
	case from.SecretRef != nil:
		s, err := r.objects.secret(ctx, r.pod.Namespace, from.SecretRef.Name)
		if err != nil {
			return unless(optional(from.SecretRef.Optional), err)
		}
		for k, v := range s.Data {
			data[k] = string(v)
		}
	}
	for _, k := range sorted(data) {
		env.set(from.Prefix+k, data[k])
	}
	return nil
}

// value resolves one valueFrom; ok is false where something optional is missing.
func (r resolver) value(ctx context.Context, c *v1.Container, from *v1.EnvVarSource) (value string, ok bool, err error) {
	switch {
	case from.FieldRef != nil:
		value, err = r.field(from.FieldRef.FieldPath)
		return value, err == nil, err
	case from.ResourceFieldRef != nil:
		value, err = r.resource(c, from.ResourceFieldRef)
		return value, err == nil, err
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		cm, err := r.objects.configMap(ctx, r.pod.Namespace, ref.Name)
		if err != nil {
			return "", false, unless(optional(ref.Optional), err)
		}
		if value, ok = cm.Data[ref.Key]; !ok {
			err = missing{ref.Key, "ConfigMap", r.pod.Namespace, ref.Name}
		}
		return value, ok, unless(optional(ref.Optional), err)
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		s, err := r.objects.secret(ctx, r.pod.Namespace, ref.Name)
		if err != nil {
			return "", false, unless(optional(ref.Optional), err)
		}
		b, ok := s.Data[ref.Key]
		if !ok {
			err = missing{ref.Key, "Secret", r.pod.Namespace, ref.Name}
		}
		return string(b), ok, unless(optional(ref.Optional), err)
	}
	return "", false, fmt.Errorf("this kind of valueFrom is not known to the development node: use fieldRef, resourceFieldRef, configMapKeyRef or secretKeyRef")
}

// field reads what the downward API offers.
func (r resolver) field(path string) (string, error) {
	p := r.pod
	if kind, key, ok := subscript(path); ok {
		switch kind {
		case "metadata.labels":
			return p.Labels[key], nil
		case "metadata.annotations":
			return p.Annotations[key], nil
		}
	}
	switch path {
	case "metadata.name":
		return p.Name, nil
	case "metadata.namespace":
		return p.Namespace, nil
	case "metadata.uid":
		return string(p.UID), nil
	case "metadata.labels":
		return quoted(p.Labels), nil
	case "metadata.annotations":
		return quoted(p.Annotations), nil
	case "spec.nodeName":
		return p.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return p.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs":
		return r.ip, nil
	}
	return "", fmt.Errorf("field %s is not offered by the downward API", path)
}

// subscript splits metadata.labels['x'] into its two halves.
func subscript(path string) (field, key string, ok bool) {
	field, rest, ok := strings.Cut(path, "['")
	if !ok {
		return "", "", false
	}
	key, ok = strings.CutSuffix(rest, "']")
	return field, key, ok
}

// resource reads a request or limit of a container; a limit that is not set is what the node has.
func (r resolver) resource(c *v1.Container, ref *v1.ResourceFieldSelector) (string, error) {
	if ref.ContainerName != "" && ref.ContainerName != c.Name {
		i := slices.IndexFunc(r.pod.Spec.Containers, func(o v1.Container) bool { return o.Name == ref.ContainerName })
		if i < 0 {
			return "", fmt.Errorf("resourceFieldRef names container %s, which the Pod does not have", ref.ContainerName)
		}
		c = &r.pod.Spec.Containers[i]
	}
	kind, name, ok := strings.Cut(ref.Resource, ".")
	if !ok || kind != "limits" && kind != "requests" {
		return "", fmt.Errorf("resource %s is not known: use limits.cpu, limits.memory, requests.cpu or the like", ref.Resource)
	}
	q, set := c.Resources.Limits[v1.ResourceName(name)]
	if kind == "requests" {
		q = c.Resources.Requests[v1.ResourceName(name)]
	} else if !set {
		q = r.capacity[v1.ResourceName(name)]
	}
	return divided(q, ref.Divisor), nil
}

// divided rounds up, as Kubernetes does: 250m of a CPU with the divisor 1 is 1.
func divided(q, divisor resource.Quantity) string {
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	if d := divisor.MilliValue(); d%1000 != 0 {
		return strconv.FormatInt((q.MilliValue()+d-1)/d, 10)
	}
	d := divisor.Value()
	return strconv.FormatInt((q.Value()+d-1)/d, 10)
}

// quoted renders labels or annotations as a downward API volume shows them.
func quoted(m map[string]string) string {
	lines := make([]string, 0, len(m))
	for _, k := range sorted(m) {
		lines = append(lines, k+"="+strconv.Quote(m[k]))
	}
	return strings.Join(lines, "\n")
}
