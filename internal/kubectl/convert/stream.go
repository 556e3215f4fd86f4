package convert

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
	kyaml "sigs.k8s.io/yaml"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// Options say how to convert.
type Options struct {
	// Now is from when on the two sides are compared: daylight saving is looked at for a year.
	Now time.Time
	// TimeZone is written where a CronJob names none: the zone of its kube-controller-manager. "" leaves the field out, which is UTC.
	TimeZone string
}

// Forward converts the CronJobs of a stream of YAML or JSON documents, also those in a List. Everything else, and every comment,
// stays. An object that cannot be converted stays, too, and its Report says why; an error is about the text itself.
func Forward(in []byte, o Options) ([]byte, []Report, error) { return each(in, o, forward) }

// Back converts the ScheduledJobs of a stream to CronJobs.
func Back(in []byte, o Options) ([]byte, []Report, error) { return each(in, o, back) }

// conversion edits an object of its kind, or refuses to. ok is false for other kinds.
type conversion func(object *yaml.Node, o Options) (r Report, ok bool)

func each(in []byte, o Options, convert conversion) ([]byte, []Report, error) {
	var out bytes.Buffer
	var reports []Report
	for i, text := range documents(in) {
		found, text, err := document(text, o, convert)
		if err != nil {
			return nil, nil, fmt.Errorf("document %d: %w", i+1, err)
		}
		reports = append(reports, found...)
		out.Write(text)
	}
	return out.Bytes(), reports, nil
}

// document converts what is in one. If that is nothing, its text comes back as it was.
func document(text []byte, o Options, convert conversion) ([]Report, []byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, nil, err
	}
	if len(root.Content) == 0 {
		return nil, text, nil
	}
	reports, touched := objects(root.Content[0], o, convert)
	if !touched {
		return reports, text, nil
	}
	var out bytes.Buffer
	if bytes.HasPrefix(text, []byte("---")) {
		out.WriteString("---\n")
	}
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if compact(&root) {
		e.CompactSeqIndent()
	}
	if err := errors.Join(e.Encode(&root), e.Close()); err != nil {
		return nil, nil, err
	}
	return reports, out.Bytes(), nil
}

// compact says that a list stands right below its field, and not two spaces further in.
func compact(n *yaml.Node) bool {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if key, list := n.Content[i], n.Content[i+1]; list.Kind == yaml.SequenceNode && list.Style&yaml.FlowStyle == 0 && len(list.Content) > 0 {
			return list.Column == key.Column
		}
	}
	return slices.ContainsFunc(n.Content, compact)
}

// objects converts an object, or those of a List. touched says that some have changed.
func objects(object *yaml.Node, o Options, convert conversion) (reports []Report, touched bool) {
	if items := get(object, "items"); items != nil && items.Kind == yaml.SequenceNode {
		list := text(object, "kind") // such as CronJobList
		for _, item := range items.Content {
			r, changed := objects(item, o, convert)
			reports, touched = append(reports, r...), touched || changed
		}
		if touched && list != "List" {
			set(object, "List", "kind")
			set(object, "v1", "apiVersion")
		}
		return reports, touched
	}
	before := clone(object)
	r, ok := convert(object, o)
	if !ok {
		return nil, false
	}
	if r.Refused() {
		*object, r.To = *before, ""
		return []Report{r}, false
	}
	return []Report{r}, true
}

// documents splits a stream at its "---" lines, which stay with the document that they begin.
func documents(in []byte) (all [][]byte) {
	begin := 0
	for at := 0; at < len(in); {
		end := len(in)
		if i := bytes.IndexByte(in[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		if line := bytes.TrimRight(in[at:end], " \t\r\n"); at > begin && (bytes.Equal(line, []byte("---")) || bytes.HasPrefix(line, []byte("--- "))) {
			all, begin = append(all, in[begin:at]), at
		}
		at = end
	}
	return append(all, in[begin:])
}

// Manifest is an object of the cluster as text, as "kubectl get -o yaml" shows it.
func Manifest(object any) ([]byte, error) { return kyaml.Marshal(object) }

// bare takes off what belongs to the object that is, and not to the one that will be.
func bare(object *yaml.Node) {
	remove(object, "status")
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "ownerReferences"} {
		remove(object, "metadata", field)
	}
	for _, annotation := range []string{"kubectl.kubernetes.io/last-applied-configuration", v1alpha1.ConvertedFromAnnotation} {
		remove(object, "metadata", "annotations", annotation)
	}
	remove(object, "metadata", "labels", v1alpha1.SuspendedByLabel)
	for _, empty := range []string{"annotations", "labels"} {
		if m := get(object, "metadata", empty); m != nil && len(m.Content) == 0 {
			remove(object, "metadata", empty)
		}
	}
	for _, path := range [][]string{{"spec", "jobTemplate", "metadata", "creationTimestamp"}, {"spec", "jobTemplate", "spec", "template", "metadata", "creationTimestamp"}} {
		remove(object, path...)
	}
}

// get is the node at a path, nil where there is none.
func get(n *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		if n == nil || n.Kind != yaml.MappingNode {
			return nil
		}
		var next *yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				next = n.Content[i+1]
			}
		}
		n = next
	}
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// text is the scalar at a path, "" where there is none.
func text(n *yaml.Node, path ...string) string {
	if at := get(n, path...); at != nil && at.Kind == yaml.ScalarNode && at.Tag != "!!null" {
		return at.Value
	}
	return ""
}

// set writes a string at a path whose parents exist; a field that is there keeps its place and its comments. timeZone comes after the
// schedule.
func set(n *yaml.Node, value string, path ...string) {
	parent, key := get(n, path[:len(path)-1]...), path[len(path)-1]
	if parent == nil {
		return
	}
	if at := get(parent, key); at != nil {
		at.Kind, at.Tag, at.Value = yaml.ScalarNode, "!!str", value
		return
	}
	k, v := &yaml.Node{}, &yaml.Node{}
	k.SetString(key)
	v.SetString(value)
	place := len(parent.Content)
	for i := 0; key == "timeZone" && i+1 < len(parent.Content); i += 2 {
		if parent.Content[i].Value == "schedule" {
			place = i + 2
		}
	}
	parent.Content = slices.Insert(parent.Content, place, k, v)
}

// remove takes the field at a path away, with its comments.
func remove(n *yaml.Node, path ...string) {
	parent, key := get(n, path[:len(path)-1]...), path[len(path)-1]
	if parent == nil || parent.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(parent.Content); i += 2 {
		if parent.Content[i].Value == key {
			parent.Content = slices.Delete(parent.Content, i, i+2)
			return
		}
	}
}

// clone copies a node with what is below it. Anchors and their aliases are shared, and none is edited.
func clone(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	for i, below := range n.Content {
		c.Content[i] = clone(below)
	}
	return &c
}
