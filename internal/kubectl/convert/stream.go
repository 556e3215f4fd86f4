package convert

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
	kyaml "sigs.k8s.io/yaml"
)

// Options control the conversion.
type Options struct {
	// Now begins the year within which the two sides are compared for daylight saving.
	Now time.Time
	// TimeZone is the zone for CronJobs that name none: that of their kube-controller-manager. "" leaves the field out, and a
	// ScheduledJob then uses UTC.
	TimeZone string
}

// Forward converts the CronJobs of a stream of YAML or JSON documents, including those in a List. Everything else, and every
// comment, stays. An object that cannot be converted stays too, and its Report has the reason. An error means that the text
// itself is invalid.
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
			return nil, nil, fmt.Errorf("document %d: %w (objects are separated by lines of ---)", i+1, err)
		}
		reports = append(reports, found...)
		out.Write(text)
	}
	return out.Bytes(), reports, nil
}

// document converts the objects of one document. If nothing changes, it returns the text as it was.
func document(text []byte, o Options, convert conversion) (reports []Report, out []byte, err error) {
	var roots []*yaml.Node
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; { // another document may follow a "..." line
		root := &yaml.Node{}
		if err := d.Decode(root); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, nil, err
		}
		roots = append(roots, root)
	}
	touched := false
	for _, root := range roots {
		if len(root.Content) == 0 {
			continue
		}
		plain, why := expand(root.Content[0])
		root.Content[0] = plain
		found, changed := objects(plain, o, convert, why)
		reports, touched = append(reports, found...), touched || changed
	}
	if !touched {
		return reports, text, nil
	}
	var b bytes.Buffer
	for i, root := range roots {
		if i > 0 || bytes.HasPrefix(text, []byte("---")) {
			b.WriteString("---\n")
		}
		if err := write(&b, root); err != nil {
			return nil, nil, err
		}
	}
	return reports, b.Bytes(), nil
}

// write encodes a document and reads it back: a silent change by the encoder must not reach a cluster.
func write(to *bytes.Buffer, root *yaml.Node) error {
	unfold(root)
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if compact(root) {
		e.CompactSeqIndent()
	}
	if err := errors.Join(e.Encode(root), e.Close()); err != nil {
		return err
	}
	var meant, written any
	if err := errors.Join(root.Decode(&meant), yaml.Unmarshal(b.Bytes(), &written)); err != nil {
		return err
	}
	if !reflect.DeepEqual(meant, written) {
		return errors.New("writing it would change one of its strings: use | instead of > for strings of several lines, and no trailing blanks")
	}
	to.Write(b.Bytes())
	return nil
}

// compact reports whether a list is indented like its field, and not by two more spaces.
func compact(n *yaml.Node) bool {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if key, list := n.Content[i], n.Content[i+1]; list.Kind == yaml.SequenceNode && list.Style&yaml.FlowStyle == 0 && len(list.Content) > 0 {
			return list.Column == key.Column
		}
	}
	return slices.ContainsFunc(n.Content, compact)
}

// objects converts an object, or those of a List. touched reports whether any has changed. why is the reason if none can be
// converted, else "".
func objects(object *yaml.Node, o Options, convert conversion, why string) (reports []Report, touched bool) {
	if items := get(object, "items"); items != nil && items.Kind == yaml.SequenceNode {
		list := text(object, "kind") // such as CronJobList
		for _, item := range items.Content {
			r, changed := objects(item, o, convert, why)
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
	if why != "" {
		r.add(Refusal, "the document", "%s", why)
	}
	if r.Refused() {
		*object, r.To = *before, ""
		return []Report{r}, false
	}
	return []Report{r}, true
}

// documents splits a stream at its "---" lines; each stays with the document that it begins.
func documents(in []byte) (all [][]byte) {
	begin := 0
	for at := 0; at < len(in); {
		end := len(in)
		if i := bytes.IndexByte(in[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		if line := bytes.TrimRight(in[at:end], " \t\r\n"); at > begin && (bytes.Equal(line, []byte("---")) || bytes.HasPrefix(line, []byte("--- ")) || bytes.HasPrefix(line, []byte("---\t"))) {
			all, begin = append(all, in[begin:at]), at
		}
		at = end
	}
	return append(all, in[begin:])
}

// Manifest returns an object of the cluster as YAML, in the form of "kubectl get -o yaml".
func Manifest(object any) ([]byte, error) { return kyaml.Marshal(object) }
