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
			return nil, nil, fmt.Errorf("document %d: %w (objects are separated by lines of ---)", i+1, err)
		}
		reports = append(reports, found...)
		out.Write(text)
	}
	return out.Bytes(), reports, nil
}

// document converts what is in one. If that is nothing, its text comes back as it was.
func document(text []byte, o Options, convert conversion) (reports []Report, out []byte, err error) {
	var roots []*yaml.Node
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; { // another may begin behind a line of ...
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

// write encodes a document, and reads it again: what the encoder changes in silence must not reach a cluster.
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
		return errors.New("it cannot be written without a change to one of its texts: write texts of several lines with | in place of >, and without trailing blanks")
	}
	to.Write(b.Bytes())
	return nil
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

// objects converts an object, or those of a List. touched says that some have changed; why is why none can be, "" where they can.
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

// documents splits a stream at its "---" lines, which stay with the document that they begin.
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

// Manifest is an object of the cluster as text, as "kubectl get -o yaml" shows it.
func Manifest(object any) ([]byte, error) { return kyaml.Marshal(object) }
