package app

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagSet is a trigger's flags, and the configuration that they set.
func flagSet() (*pflag.FlagSet, *TriggerConfig) {
	c, f := TriggerDefaults(), pflag.NewFlagSet("test", pflag.ContinueOnError)
	c.AddFlags(f)
	return f, &c
}

func env(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func TestFlagBeatsEnvironmentBeatsDefault(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		env  []string
		want string
	}{
		{"neither", nil, nil, DefaultNATS},
		{"environment", nil, []string{"JOBSTREAM_NATS_URL", "nats://env:1"}, "nats://env:1"},
		{"flag", []string{"--nats-url=nats://flag:2"}, nil, "nats://flag:2"},
		{"both", []string{"--nats-url=nats://flag:2"}, []string{"JOBSTREAM_NATS_URL", "nats://env:1"}, "nats://flag:2"},
		{"empty environment is none", nil, []string{"JOBSTREAM_NATS_URL", ""}, DefaultNATS},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, c := flagSet()
			if err := f.Parse(tt.args); err != nil {
				t.Fatal(err)
			}
			if err := takeEnv(f, env(tt.env...)); err != nil {
				t.Fatal(err)
			}
			if c.Bus.URL != tt.want {
				t.Errorf("URL is %s, want %s", c.Bus.URL, tt.want)
			}
		})
	}
}

func TestEveryBadTwinIsNamed(t *testing.T) {
	f, _ := flagSet()
	err := takeEnv(f, env("JOBSTREAM_NATS_REPLICAS", "three", "JOBSTREAM_RELIST_INTERVAL", "soon"))
	if usage := (Usage{}); !errors.As(err, &usage) {
		t.Fatalf("%v is no usage error", err)
	}
	for _, want := range []string{"JOBSTREAM_NATS_REPLICAS", "three", "JOBSTREAM_RELIST_INTERVAL", "soon"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %s", err, want)
		}
	}
}

func TestHelpNamesTwins(t *testing.T) {
	config := ReconcilerDefaults()
	c := &cobra.Command{Use: "jobstream-test", RunE: func(*cobra.Command, []string) error { return nil }}
	config.AddFlags(c.Flags())
	var out bytes.Buffer
	if code := execute(t.Context(), c, []string{"--help"}, &out, &out); code != ExitFine {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"--nats-url URL", "[$JOBSTREAM_NATS_URL]", "[$JOBSTREAM_HEALTH_BIND_ADDRESS]"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("help does not say %s:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "JOBSTREAM_HELP") {
		t.Error("--help has a twin")
	}
}

func TestOptionsThatCannotWork(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"--metrics-bind-address": func(o *Options) { o.MetricsAddress = "8080" },
		"--health-bind-address":  func(o *Options) { o.HealthAddress = "localhost" },
		"--nats-url":             func(o *Options) { o.Bus.URL = "" },
		"--cluster-name":         func(o *Options) { o.Bus.Cluster = "" },
	} {
		o := defaults(Off, Off)
		change(&o)
		err := o.complete()
		if usage := (Usage{}); !errors.As(err, &usage) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKubeconfigOfTheShell(t *testing.T) {
	t.Setenv("KUBECONFIG", "/shell")
	for _, tt := range []struct{ flag, service, want string }{
		{"", "", "/shell"},
		{"/flag", "", "/flag"},
		{"", "10.0.0.1", ""}, // in a cluster, the service account is what is meant
	} {
		t.Setenv("KUBERNETES_SERVICE_HOST", tt.service)
		o := defaults(Off, Off)
		o.Kubeconfig = tt.flag
		if err := o.complete(); err != nil || o.Kubeconfig != tt.want {
			t.Errorf("flag %q, service %q: %q, %v, want %q", tt.flag, tt.service, o.Kubeconfig, err, tt.want)
		}
	}
}

// Two programs on one machine must not want the same port.
func TestDefaultPortsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range []string{triggerMetrics, triggerHealth, reconcilerMetrics, reconcilerHealth} {
		if seen[a] || !strings.HasPrefix(a, "127.0.0.1:") {
			t.Errorf("%s is taken or open to others", a)
		}
		seen[a] = true
	}
}
