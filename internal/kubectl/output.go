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
	// wide is -o for a table with more columns, nameOnly for names alone.
	wide     = "wide"
	nameOnly = "name"
)

// output is the flag -o: the format of standard output. Without -o the output is for people.
type output struct {
	flags *genericclioptions.PrintFlags
	also  []string // further formats of this command
}

// newOutput makes the flag. operation is the past participle that a command prints after each object it changed, such as created.
func newOutput(operation string, also ...string) *output {
	return &output{genericclioptions.NewPrintFlags(operation).WithTypeSetter(scheme), also}
}

// withoutNames removes -o name, for results that have no name.
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

// formatsAnnotation is the annotation of a flag that lists its formats, for completion.
const formatsAnnotation = "jobstream_formats"

// template stands for a template written by the user.
const template = "TEMPLATE"

// formats returns the accepted values of -o.
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

// format returns the value of -o, "" if it was not given.
func (o *output) format() string { return *o.flags.OutputFormat }

// objects returns a printer for scripts, or nil if the output is a table for people.
func (o *output) objects() (printers.ResourcePrinter, error) {
	if o.format() == "" || slices.Contains(o.also, o.format()) {
		return nil, nil
	}
	return o.printer("%s")
}

// printer returns the printer for objects. said surrounds the operation, such as "%s (dry run)".
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

// print prints the objects as one List, even an empty one, as kubectl prints several objects. With -o name, and for operations,
// it prints a line for each.
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

// asObjects converts a slice of concrete objects to runtime.Objects.
func asObjects[T runtime.Object](all []T) []runtime.Object {
	objects := make([]runtime.Object, len(all))
	for i, o := range all {
		objects[i] = o
	}
	return objects
}
