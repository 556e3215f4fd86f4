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
	"k8s.io/apimachinery/pkg/util/yaml"

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

	m := observed()
	m.watches(func() int { return 0 })
	m.bus(func() error { return nil })
	m.backlog(func() (bus.Backlog, bool) { return bus.Backlog{}, false })
	m.uses(func() []bus.Use { return nil })
	names := describedBy(m)
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
		for _, name := range regexp.MustCompile(`\b(jobstream|(?:cron)?job_controller|kube_cronjob)_[a-z_]+_(total|seconds|bytes|ready|info|pods|jobs|time|suspend|active)(_bucket|_sum|_count)?\b`).FindAllString(string(text), -1) {
			if name = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, ""); !slices.Contains(names, name) {
				t.Errorf("%s tells of %s, which we do not have", page, name)
			}
		}
	}
}

// describedBy returns the names of all metrics that are jobstream's, or that Kubernetes has chosen.
func describedBy(m *metrics) (names []string) {
	fqName := regexp.MustCompile(`fqName: "([^"]*)"`)
	descriptions := make(chan *prometheus.Desc)
	go func() {
		m.registry.Describe(descriptions)
		m.twins.Describe(descriptions)
		close(descriptions)
	}()
	for d := range descriptions {
		name := fqName.FindStringSubmatch(d.String())[1]
		if strings.HasPrefix(name, "jobstream_") || namedByKubernetes(name) {
			names = append(names, name)
		}
	}
	return names
}

// What an operator copies from docs/operations.md into Prometheus is YAML, and each alert has a complete expression about metrics that are there.
func TestAlertsOfTheDocument(t *testing.T) {
	raw, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	known, alerts := describedBy(observed()), 0
	known = append(known, "jobstream_events_stream_bytes", "jobstream_events_stream_limit_bytes", "jobstream_events_stream_first_sequence",
		"jobstream_events_stream_oldest_timestamp_seconds", "jobstream_events_stream_limit_seconds") // TestOperationsDocument knows them
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(raw), -1) {
		var rules []struct {
			Alert, Expr string
			Annotations struct{ Summary string }
		}
		if err := yaml.Unmarshal([]byte(block[1]), &rules); err != nil {
			if other := new(any); yaml.Unmarshal([]byte(block[1]), other) != nil {
				t.Errorf("%v in\n%s", err, block[1])
			}
			continue // no list of alerts
		}
		for _, r := range rules {
			alerts++
			if r.Alert == "" || r.Expr == "" || r.Annotations.Summary == "" || strings.ContainsRune(r.Expr, '#') {
				t.Errorf("%+v is not complete", r)
			}
			for _, pair := range []string{"()", "{}", "[]"} {
				if strings.Count(r.Expr, pair[:1]) != strings.Count(r.Expr, pair[1:]) {
					t.Errorf("%s: %s in %s", r.Alert, pair, r.Expr)
				}
			}
			for _, name := range regexp.MustCompile(`\b(jobstream|kube_cronjob)_[a-z_]+`).FindAllString(r.Expr, -1) {
				if name = strings.TrimSuffix(name, "_bucket"); !slices.Contains(known, name) {
					t.Errorf("%s: there is no %s", r.Alert, name)
				}
			}
		}
	}
	if alerts < 6 {
		t.Errorf("%d alerts", alerts)
	}
}
