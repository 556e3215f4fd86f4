package convert

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// bare removes what identifies the existing object and must not be copied to its successor.
func bare(object *yaml.Node) {
	remove(object, "status")
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "ownerReferences", "finalizers"} {
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

// get returns the node at a path, or nil.
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
	return n
}

// text returns the scalar at a path, or "".
func text(n *yaml.Node, path ...string) string {
	if at := get(n, path...); at != nil && at.Kind == yaml.ScalarNode && at.Tag != "!!null" {
		return at.Value
	}
	return ""
}

// set writes a string at a path whose parents exist. An existing field keeps its place and its comments; timeZone is inserted
// after the schedule.
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

// remove deletes the field at a path, with its comments.
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

// clone copies a node and its descendants.
func clone(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	for i, below := range n.Content {
		c.Content[i] = clone(below)
	}
	return &c
}

// unfold turns folded strings (>) into literal ones (|): the encoder would fold them at other places.
func unfold(n *yaml.Node) {
	if n.Style&yaml.FoldedStyle != 0 {
		n.Style = n.Style&^yaml.FoldedStyle | yaml.LiteralStyle
	}
	for _, below := range n.Content {
		unfold(below)
	}
}

// expandedMax limits a document with expanded aliases, in nodes.
const expandedMax = 100_000

// expand replaces aliases by the nodes they refer to: an edit of one object must not change another. why is the reason if that is
// impossible.
func expand(n *yaml.Node) (plain *yaml.Node, why string) {
	left, aliased := expandedMax, false
	var walk func(n *yaml.Node) *yaml.Node
	walk = func(n *yaml.Node) *yaml.Node {
		if left--; left < 0 {
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
		}
		if n.Kind == yaml.AliasNode {
			aliased = true
			c := walk(n.Alias)
			c.HeadComment, c.LineComment, c.FootComment = n.HeadComment, n.LineComment, n.FootComment
			return c
		}
		c := *n
		c.Anchor, c.Content = "", make([]*yaml.Node, len(n.Content))
		for i, below := range n.Content {
			if below.Kind == yaml.ScalarNode && below.Tag == "!!merge" {
				why = "it has a merge key (<<): write out what it merges"
			}
			c.Content[i] = walk(below)
		}
		return &c
	}
	plain = walk(n)
	if left < 0 && aliased {
		return n, "its aliases expand to too much: write out what they refer to"
	}
	if left < 0 {
		return n, ""
	}
	return plain, why
}
