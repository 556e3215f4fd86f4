package e2e

import (
	"errors"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// named is a field of an object that a report names as different.
type named struct{ object, field, text string }

// speaks reports whether the sentence is about the field at the path: it names the field, or one around it, or its text contains
// the field's name.
func (n named) speaks(o *unstructured.Unstructured, path string) bool {
	return n.object == o.GetName() && (n.field == path || strings.HasPrefix(path, n.field+".") || slices.Contains(strings.Fields(n.text), path[strings.LastIndex(path, ".")+1:]))
}

var (
	reported   = regexp.MustCompile(`^(?:CronJob|ScheduledJob) (\S+): now a (?:CronJob|ScheduledJob)$`)
	difference = regexp.MustCompile(`^  (?:CHANGE|note) +(\S+): (.+)$`)
)

// convert runs a line that converts everything, and returns its output and the fields that its report names.
func (u *terminal) convert(line string) (out string, fields []named) {
	u.Helper()
	out, errOut, code := u.enter(line)
	if code != 0 {
		u.Fatalf("exit code %d: %s", code, line)
	}
	object := ""
	for line := range strings.Lines(errOut) {
		line = strings.TrimRight(line, "\n")
		if m := reported.FindStringSubmatch(line); m != nil {
			object = m[1][strings.Index(m[1], "/")+1:]
		} else if m := difference.FindStringSubmatch(line); m != nil {
			fields = append(fields, named{object, m[1], m[2]})
		} else {
			u.Errorf("the report has %q", line)
		}
	}
	return out, fields
}

// objects returns those of a stream of documents.
func objects(t *testing.T, text string) (all []*unstructured.Unstructured) {
	t.Helper()
	for d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := d.Decode(&o.Object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if len(o.Object) == 0 {
			continue // Helm renders what is switched off as an empty document
		}
		delete(o.Object, "status") // kubectl prints an empty one for an object that it has not sent
		all = append(all, o)
	}
}

// checkForward: each CronJob has become a ScheduledJob, which differs from it only in what the report names; other objects and
// comments are unchanged.
func (c realCronJobs) checkForward(t *testing.T, text, converted string, report []named) {
	t.Helper()
	before, after := objects(t, text), objects(t, converted)
	for i, o := range before {
		if o.GetKind() != "CronJob" {
			continue
		}
		if _, known := c.prints[o.GetName()]; !known {
			t.Errorf("the output of CronJob %s is not in the table", o.GetName())
		}
		if i < len(after) && (after[i].GetKind() != v1alpha1.ScheduledJobKind || after[i].GetAPIVersion() != v1alpha1.GroupVersion.String()) {
			t.Errorf("CronJob %s is a %s of %s now", o.GetName(), after[i].GetKind(), after[i].GetAPIVersion())
		}
		o.SetKind(v1alpha1.ScheduledJobKind)
		o.SetAPIVersion(v1alpha1.GroupVersion.String())
	}
	checkSame(t, "what was converted", before, after, report)
	for line := range strings.Lines(text) {
		if comment := strings.TrimSpace(line); strings.HasPrefix(comment, "#") && !strings.Contains(converted, comment) {
			t.Errorf("this comment is lost: %s", comment)
		}
	}
}

// checkSame: only the named fields are different.
func checkSame(t *testing.T, what string, before, after []*unstructured.Unstructured, fields []named) {
	t.Helper()
	if len(before) != len(after) {
		t.Fatalf("%s: %d objects, and there were %d", what, len(after), len(before))
	}
	for i, o := range before {
		for _, path := range differing("", o.Object, after[i].Object) {
			if !slices.ContainsFunc(fields, func(n named) bool { return n.speaks(o, path) }) {
				t.Errorf("%s: %s %s differs in %s, and the report does not name it:\n%v\n%v", what, o.GetKind(), o.GetName(), path, o.Object, after[i].Object)
			}
		}
	}
}

// differing returns the paths of fields in which two values differ.
func differing(path string, a, b any) (paths []string) {
	x, isMap := a.(map[string]any)
	y, also := b.(map[string]any)
	if !isMap || !also {
		if reflect.DeepEqual(a, b) {
			return nil
		}
		return []string{path}
	}
	for key := range x {
		paths = append(paths, differing(strings.TrimPrefix(path+"."+key, "."), x[key], y[key])...)
	}
	for key := range y {
		if _, both := x[key]; !both {
			paths = append(paths, strings.TrimPrefix(path+"."+key, "."))
		}
	}
	return paths
}

// checkBackFromTheCluster: as the API server reads them, with its defaults, the CronJobs converted from the ScheduledJobs that
// ran equal those that these came from. One that was suspended has been resumed.
func (u *terminal) checkBackFromTheCluster(t *testing.T, originals []*unstructured.Unstructured, report []named) {
	t.Helper()
	const read = "kubectl create --dry-run=server -o json -f "
	back, alsoReport := u.convert("kubectl jobstream convert --to=CronJob $(kubectl get scheduledjobs -o name | sed 's,.*/,scheduledjob/,')")
	u.write("back.yaml", back)
	returned := map[string]*unstructured.Unstructured{}
	for _, o := range listed(t, objects(t, u.succeeds(read+"back.yaml"))) {
		returned[o.GetName()] = o
	}
	for _, o := range originals {
		if o.GetKind() != "CronJob" {
			continue
		}
		text, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		u.write("one.json", string(text))
		out, errOut, code := u.enter(read + "one.json")
		if strings.Contains(string(text), "CRON_TZ") { // charts older than timeZone still have it
			if code == 0 || !strings.Contains(errOut, "cannot use TZ or CRON_TZ in schedule") || returned[o.GetName()] == nil {
				t.Errorf("the API server should reject the original: exit code %d; and it should come back: %v", code, returned[o.GetName()] != nil)
			}
			continue
		}
		if code != 0 || returned[o.GetName()] == nil {
			t.Fatalf("CronJob %s cannot be parsed, or has not come back", o.GetName())
		}
		checkSame(t, "the way back from the cluster", []*unstructured.Unstructured{bare(objects(t, out)[0])},
			[]*unstructured.Unstructured{bare(returned[o.GetName()])}, append(report, alsoReport...))
	}
}

// bare removes what the API server and kubectl have written, and whether the object is suspended.
func bare(o *unstructured.Unstructured) *unstructured.Unstructured {
	for _, field := range []string{"uid", "creationTimestamp", "managedFields", "generation", "resourceVersion"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	annotations := o.GetAnnotations()
	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	o.SetAnnotations(annotations)
	if len(annotations) == 0 {
		unstructured.RemoveNestedField(o.Object, "metadata", "annotations")
	}
	unstructured.RemoveNestedField(o.Object, "spec", "suspend")
	return o
}

// listed returns the objects, and those in Lists.
func listed(t *testing.T, all []*unstructured.Unstructured) (out []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range all {
		if !o.IsList() {
			out = append(out, o)
			continue
		}
		list, err := o.ToList()
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	}
	return out
}
