package app

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/jobstream/jobstream/bus"
)

// An operator finds every flag and every metric in docs/operations.md, and none that is not there.
func TestOperationsDocument(t *testing.T) {
	raw, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	document := string(raw)

	flags := pflag.NewFlagSet("reconciler", pflag.ContinueOnError)
	c, logging := ReconcilerDefaults(), LogDefaults()
	c.AddFlags(flags)
	logging.Add(flags)
	ofTrigger, trigger := pflag.NewFlagSet("trigger", pflag.ContinueOnError), TriggerDefaults()
	trigger.AddFlags(ofTrigger)
	flags.AddFlagSet(ofTrigger)
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && !strings.Contains(document, "`--"+f.Name+"`") {
			t.Errorf("it does not tell of --%s", f.Name)
		}
	})

	var names []string
	fqName := regexp.MustCompile(`fqName: "([^"]*)"`)
	m := newMetrics()
	m.forTrigger()
	m.forReconciler()
	m.bus(func() error { return nil })
	m.backlog(func() (bus.Backlog, bool) { return bus.Backlog{}, false })
	m.uses(func() []bus.Use { return nil })
	descriptions := make(chan *prometheus.Desc)
	go func() { m.registry.Describe(descriptions); close(descriptions) }()
	for d := range descriptions {
		if name := fqName.FindStringSubmatch(d.String())[1]; strings.HasPrefix(name, "job") {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if !strings.Contains(document, "`"+name+"`") {
			t.Errorf("it does not tell of %s", name)
		}
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\b(jobstream|job_controller)_[a-z_]+_(total|seconds|bytes|ready|info)\b`).FindAllString(string(text), -1) {
			if !slices.Contains(names, name) {
				t.Errorf("%s tells of %s, which we do not have", page, name)
			}
		}
	}
}
