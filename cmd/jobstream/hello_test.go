package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/version"

	"github.com/jobstream/jobstream/internal/app"
)

// docs/operations.md describes every flag that the two programs do not have, or have with another default.
func TestOperationsDocumentTellsOfOurFlags(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## One program\n")
	section, _, _ = strings.Cut(section, "\n## ")
	own, theirs := command().Flags(), pflag.NewFlagSet("theirs", pflag.ContinueOnError)
	c, logging := app.AllInOneDefaults(), app.LogDefaults()
	c.AddFlags(theirs)
	logging.Add(theirs)
	r := app.ReconcilerDefaults()
	same := pflag.NewFlagSet("reconciler", pflag.ContinueOnError)
	r.AddFlags(same)
	logging.Add(same)
	own.VisitAll(func(f *pflag.Flag) {
		other := same.Lookup(f.Name)
		differs := other == nil && theirs.Lookup(f.Name) == nil || other != nil && other.DefValue != f.DefValue
		if differs && !f.Hidden && !strings.Contains(section, "`--"+f.Name+"`") {
			t.Errorf("it does not tell of --%s", f.Name)
		}
	})
}

func TestHello(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*settings, *found)
		says   []string
		silent string // text that must be missing
	}{
		{"as it is by default", func(*settings, *found) {}, []string{
			"\"managedBy: jobstream.dev/reconciler\" are jobstream's", "cluster        context kind, Kubernetes v1.36.3 at https://127.0.0.1:6443\n", "ScheduledJobs  on\n",
			"nats://127.0.0.1:4222; data and token in /state\n", "http://127.0.0.1:8180/metrics\n", "http://127.0.0.1:8181/readyz\n",
			"kubectl jobstream run hello --image=busybox --logs -- echo hello\n", "Ctrl-C stops"}, "--kubeconfig"},
		{"a cluster without the kind", func(_ *settings, f *found) { f.schedules = false }, []string{"ScheduledJobs  off", "--install-crds", "kubectl apply -k deploy/crd", "Jobs run without it"}, "ScheduledJobs  on"},
		{"nothing is served", func(s *settings, _ *found) { s.port, s.MetricsAddress, s.HealthAddress = 0, app.Off, "" }, []string{"listens nowhere; data in /state", "metrics        not served", "health         not served"}, "nats://"},
		{"flags that kubectl needs, too", func(s *settings, _ *found) { s.given, s.Context = "/my/config", "west" }, []string{"run hello --kubeconfig=/my/config --context=west --image"}, "\x00"},
		{"Jobs of another name, which the plugin does not make", func(s *settings, _ *found) { s.ManagedBy = "x.dev/mine" }, []string{`"managedBy: x.dev/mine" are jobstream's`}, "run hello"},
		{"inside of a cluster", func(_ *settings, f *found) { f.context = "" }, []string{"the one that this Pod is in"}, "context"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &settings{AllInOneConfig: app.AllInOneDefaults(), place: place{dir: "/state", port: usualPort}}
			f := found{context: "kind", address: "https://127.0.0.1:6443", version: version.Info{GitVersion: "v1.36.3"}, schedules: true}
			tt.change(s, &f)
			text := hello(s, f)
			for _, want := range tt.says {
				if !strings.Contains(text, want) {
					t.Errorf("it does not say %q:\n%s", want, text)
				}
			}
			if strings.Contains(text, tt.silent) {
				t.Errorf("it speaks of %q:\n%s", tt.silent, text)
			}
		})
	}
}
