package kubectl

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
)

const (
	// wide is -o of a table with more in it, nameOnly of names alone.
	wide     = "wide"
	nameOnly = "name"
)

// output is the flag -o with what belongs to it: which format standard output has. Without -o it is for people.
type output struct {
	flags *genericclioptions.PrintFlags
	also  []string // formats of the command's own
}

// newOutput makes the flag. operation is what a command that changes objects says of each, such as created.
func newOutput(operation string, also ...string) *output {
	return &output{genericclioptions.NewPrintFlags(operation).WithTypeSetter(scheme), also}
}

// withoutNames takes out -o name, for what has no name.
func (o *output) withoutNames() *output {
	o.flags.NamePrintFlags = nil
	return o
}

// addTo adds the flag to a command.
func (o *output) addTo(c *cobra.Command) {
	o.flags.AddFlags(c)
	f := c.Flags()
	f.Lookup("output").Usage = "`format`: " + strings.Join(o.formats(), ", ")
	var words []string
	for _, format := range o.formats() {
		words = append(words, strings.TrimSuffix(format, template))
	}
	f.Lookup("output").Annotations = map[string][]string{formatsAnnotation: words}
	for _, rare := range []string{"allow-missing-template-keys", "show-managed-fields", "template"} {
		f.Lookup(rare).Hidden = true
	}
}

// formatsAnnotation of a flag is what may stand behind it, for completion.
const formatsAnnotation = "jobstream_formats"

// template stands for one that the user writes.
const template = "TEMPLATE"

// formats are what may stand behind -o.
func (o *output) formats() []string {
	all := slices.Clone(o.also)
	for _, format := range []string{"json", "yaml"} {
		if !slices.Contains(all, format) {
			all = append(all, format)
		}
	}
	if o.flags.NamePrintFlags != nil {
		all = append(all, nameOnly)
	}
	return append(all, "jsonpath="+template, "go-template="+template)
}

// format is what was asked for, "" where -o was not given.
func (o *output) format() string { return *o.flags.OutputFormat }

// objects writes objects for scripts; it is nil where people are to read a table.
func (o *output) objects() (printers.ResourcePrinter, error) {
	if o.format() == "" || slices.Contains(o.also, o.format()) {
		return nil, nil
	}
	return o.printer("%s")
}

// printer writes objects. said is what stands around the operation, such as "%s (dry run)".
func (o *output) printer(said string) (printers.ResourcePrinter, error) {
	if o.flags.NamePrintFlags != nil {
		if err := o.flags.Complete(said); err != nil {
			return nil, err
		}
	}
	p, err := o.flags.ToPrinter()
	switch {
	case genericclioptions.IsNoCompatiblePrinterError(err):
		return nil, usage{fmt.Errorf("--output=%s is none: write one of %s", o.format(), strings.Join(o.formats(), ", "))}
	case err != nil:
		return nil, usage{fmt.Errorf("--output=%s: %w", o.format(), err)}
	}
	return p, nil
}

// print writes the objects as one, which is how kubectl shows several: a list, also where there are none. Names, and what is
// said of each, are lines.
func (o *output) print(p printers.ResourcePrinter, objects []runtime.Object, out io.Writer) error {
	if o.format() == "" || o.format() == nameOnly {
		for _, object := range objects {
			if err := p.PrintObj(object, out); err != nil {
				return err
			}
		}
		return nil
	}
	list := &corev1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, Items: []runtime.RawExtension{}}
	for _, object := range objects {
		list.Items = append(list.Items, runtime.RawExtension{Object: object})
	}
	return p.PrintObj(list, out)
}

// asObjects makes objects of what is more than that.
func asObjects[T runtime.Object](all []T) []runtime.Object {
	objects := make([]runtime.Object, len(all))
	for i, o := range all {
		objects[i] = o
	}
	return objects
}
