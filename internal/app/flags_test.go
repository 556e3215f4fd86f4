package app

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/bus/cloudevent"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/backoff"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/internal/flags"
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
		{"neither", nil, nil, flags.DefaultNATS},
		{"environment", nil, []string{"JOBSTREAM_NATS_URL", "nats://env:1"}, "nats://env:1"},
		{"flag", []string{"--nats-url=nats://flag:2"}, nil, "nats://flag:2"},
		{"both", []string{"--nats-url=nats://flag:2"}, []string{"JOBSTREAM_NATS_URL", "nats://env:1"}, "nats://flag:2"},
		{"empty environment is none", nil, []string{"JOBSTREAM_NATS_URL", ""}, flags.DefaultNATS},
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

// The program with both in one process has all flags of both, except those for a NATS server.
func TestAllInOneHasTheFlagsOfBoth(t *testing.T) {
	both, nats, one := pflag.NewFlagSet("both", pflag.ContinueOnError), pflag.NewFlagSet("nats", pflag.ContinueOnError), pflag.NewFlagSet("one", pflag.ContinueOnError)
	r, a, trigger := ReconcilerDefaults(), AllInOneDefaults(), pflag.NewFlagSet("trigger", pflag.ContinueOnError)
	r.AddFlags(both)
	ofTrigger := TriggerDefaults()
	ofTrigger.AddFlags(trigger)
	both.AddFlagSet(trigger)
	r.addNATS(nats)
	a.AddFlags(one)
	both.VisitAll(func(f *pflag.Flag) {
		if has := one.Lookup(f.Name) != nil; has == (nats.Lookup(f.Name) != nil) {
			t.Errorf("--%s: %v", f.Name, has)
		}
	})
	for args, wrong := range map[string]func() bool{
		"--relist-interval=1h":     func() bool { return a.RelistInterval != time.Hour },
		"--scheduledjob-metrics=7": func() bool { return a.ScheduledJobMetrics != 7 },
		"--metrics-namespaces=0":   func() bool { return a.MetricsNamespaces != 0 },
		"--concurrent-turns=7":     func() bool { return a.Keys != 7 },
		"--cluster-name=west":      func() bool { return a.Bus.Cluster != "west" },
		"--managed-by=x.dev/mine":  func() bool { return a.ManagedBy != "x.dev/mine" },
	} {
		if err := one.Parse([]string{args}); err != nil || wrong() {
			t.Errorf("%s does nothing: %v", args, err)
		}
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
		"--metrics-bind-address":                                  func(o *Options) { o.MetricsAddress = "8080" },
		"--pprof-bind-address":                                    func(o *Options) { o.PprofAddress = "6060" },
		"--health-bind-address":                                   func(o *Options) { o.HealthAddress = "localhost" },
		"--nats-url":                                              func(o *Options) { o.Bus.URL = "" },
		"--cluster-name":                                          func(o *Options) { o.Bus.Cluster = "" },
		"--nats-user-file and --nats-password-file":               func(o *Options) { o.Bus.UserFile = "user" },
		"--nats-token-file and --nats-credentials":                func(o *Options) { o.Bus.TokenFile, o.Bus.CredentialsFile = "token", "me.creds" },
		"--nats-nkey-seed-file and a user or token in --nats-url": func(o *Options) { o.Bus.NkeySeedFile, o.Bus.URL = "seed", "nats://me:secret@nats:4222" },
		"--nats-cert and --nats-key":                              func(o *Options) { o.Bus.CertFile = "cert.pem" },
	} {
		o := defaults(Off, Off)
		change(&o)
		err := o.complete()
		if usage := (Usage{}); !errors.As(err, &usage) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLimitsThatCannotWork(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		says string // "" where it can work
	}{
		{"the defaults", nil, ""},
		{"the least", []string{"--pod-failure-backoff-base=1ms", "--pod-failure-backoff-max=1ms", "--max-uncounted-pods=1", "--max-pod-changes-per-plan=1"}, ""},
		{"no base", []string{"--pod-failure-backoff-base=0"}, "--pod-failure-backoff-base 0s: use more than nothing"},
		{"a negative base", []string{"--pod-failure-backoff-base=-1s"}, "--pod-failure-backoff-base -1s: use more than nothing"},
		{"a base above the maximum", []string{"--pod-failure-backoff-base=11m"}, "--pod-failure-backoff-max 10m0s is less than --pod-failure-backoff-base 11m0s"},
		{"no maximum", []string{"--pod-failure-backoff-max=0"}, "--pod-failure-backoff-max 0s is less"},
		{"no uncounted", []string{"--max-uncounted-pods=0"}, "--max-uncounted-pods 0: use 1 to 500"},
		{"too many uncounted", []string{"--max-uncounted-pods=501"}, "--max-uncounted-pods 501: use 1 to 500"},
		{"no changes", []string{"--max-pod-changes-per-plan=0"}, "--max-pod-changes-per-plan 0: use 1 or more"},
		{"a window beyond what the bus knows", []string{"--reannounce-window=61m"}, "--reannounce-window 1h1m0s: use 0 to 1h0m0s"},
		{"a negative window", []string{"--reannounce-window=-1s"}, "--reannounce-window -1s: use 0"},
		{"no window", []string{"--reannounce-window=0"}, ""},
		{"a namespace that can be none", []string{"--namespaces=shop,Lab_1"}, `--namespaces: "Lab_1" is not the name of a namespace`},
		{"a label that is none", []string{"--event-labels=team,a b"}, `--event-labels: "a b" is not the key of a label`},
		{"a mode that is none", []string{"--event-mode=batch"}, `--event-mode: "batch" is no mode of an event: use structured or binary`},
		{"binary events", []string{"--event-mode=binary"}, ""},
		{"a negative number of namespaces", []string{"--metrics-namespaces=-1"}, "--metrics-namespaces -1: use 0 for none"},
		{"no namespaces in metrics", []string{"--metrics-namespaces=0"}, ""},
		{"negative turns", []string{"--concurrent-turns=-1"}, "--concurrent-turns -1"},
		{"negative requests", []string{"--concurrent-requests=-1"}, "--concurrent-requests -1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, f := ReconcilerDefaults(), pflag.NewFlagSet("test", pflag.ContinueOnError)
			c.AddFlags(f)
			if err := f.Parse(tt.args); err != nil {
				t.Fatal(err)
			}
			c.Kubeconfig, c.HealthAddress, c.MetricsAddress = "/nowhere", Off, Off // fails with another error if it gets as far as to connect
			err := RunReconciler(t.Context(), c)
			if tt.says == "" {
				tt.says = "/nowhere"
			} else if usage := (Usage{}); !errors.As(err, &usage) {
				t.Errorf("%v is no usage error", err)
			}
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("it says %v, want %s", err, tt.says)
			}
		})
	}
}

func TestRelistIntervalThatCannotWork(t *testing.T) {
	c := TriggerDefaults()
	c.Kubeconfig, c.RelistInterval = "/nowhere", -time.Second
	if err := RunTrigger(t.Context(), c); err == nil || !strings.Contains(err.Error(), "--relist-interval -1s") {
		t.Errorf("it says %v", err)
	}
}

func TestScheduledJobMetricsThatCannotWork(t *testing.T) {
	for n, says := range map[int]string{-1: "--scheduledjob-metrics -1: use 0 for none", mostScheduledJobs + 1: "or up to 10000", mostScheduledJobs: "/nowhere"} {
		c := TriggerDefaults()
		c.Kubeconfig, c.ScheduledJobMetrics = "/nowhere", n
		c.HealthAddress, c.MetricsAddress = Off, Off
		if err := RunTrigger(t.Context(), c); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%d: %v, want %s", n, err, says)
		}
	}
}

// The limits are Kubernetes' own unless told otherwise, and every flag sets the one that it names.
func TestFlagsOfTheReconciler(t *testing.T) {
	upstream := job.Limits{PodBackoff: backoff.Policy{Base: 10 * time.Second, Max: 10 * time.Minute}, MaxUncounted: 500, MaxPodChanges: 500,
		Reannounce: time.Hour}
	for _, tt := range []struct {
		name  string
		args  []string
		want  job.Limits
		keeps bool // managed fields, and writes core Events
	}{
		{"none", nil, upstream, false},
		{"all", []string{"--pod-failure-backoff-base=1s", "--pod-failure-backoff-max=2m", "--max-uncounted-pods=3", "--max-pod-changes-per-plan=4",
			"--ttl-after-finished", "--reannounce-window=5m", "--event-pods", "--core-events", "--keep-managed-fields"},
			job.Limits{PodBackoff: backoff.Policy{Base: time.Second, Max: 2 * time.Minute}, MaxUncounted: 3, MaxPodChanges: 4, DeleteExpired: true, Reannounce: 5 * time.Minute, AnnouncePods: true}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, f := ReconcilerDefaults(), pflag.NewFlagSet("test", pflag.ContinueOnError)
			c.AddFlags(f)
			if err := f.Parse(tt.args); err != nil {
				t.Fatal(err)
			}
			if c.Limits != tt.want || c.KeepManagedFields != tt.keeps || c.CoreEvents != tt.keeps {
				t.Errorf("%+v, keeps managed fields %v, writes Events %v; want %+v, %v", c.Limits, c.KeepManagedFields, c.CoreEvents, tt.want, tt.keeps)
			}
		})
	}
}

// The trigger and the reconciler must agree on whose Jobs are ours, so both are told in the same words.
func TestBothProgramsClaimAlike(t *testing.T) {
	ours, other := events.Claim{ManagedBy: v1alpha1.DefaultManagedBy}, events.Claim{ManagedBy: "example.com/other"}
	unmanaged := ours
	unmanaged.Unmanaged = true
	telling := ours
	telling.Labels = []string{"team", "example.com/app"}
	for _, tt := range []struct {
		name string
		args []string
		env  []string
		want events.Claim
	}{
		{"by default", nil, nil, ours},
		{"unmanaged ones too", []string{"--claim-unmanaged"}, nil, unmanaged},
		{"by the environment", nil, []string{"JOBSTREAM_CLAIM_UNMANAGED", "true"}, unmanaged},
		{"with labels", []string{"--event-labels=team,example.com/app"}, nil, telling},
		{"with labels, by the environment", nil, []string{"JOBSTREAM_EVENT_LABELS", "team,example.com/app"}, telling},
		{"under another name", []string{"--managed-by=example.com/other"}, nil, other},
	} {
		t.Run(tt.name, func(t *testing.T) {
			trigger, reconciler := TriggerDefaults(), ReconcilerDefaults()
			for program, p := range map[string]struct {
				add     func(*pflag.FlagSet)
				options *Options
			}{"trigger": {trigger.AddFlags, &trigger.Options}, "reconciler": {reconciler.AddFlags, &reconciler.Options}} {
				f := pflag.NewFlagSet(program, pflag.ContinueOnError)
				p.add(f)
				if err := errors.Join(f.Parse(tt.args), takeEnv(f, env(tt.env...))); err != nil {
					t.Fatal(err)
				}
				if got := p.options.claim(); !reflect.DeepEqual(got, tt.want) {
					t.Errorf("the %s claims %+v, want %+v", program, got, tt.want)
				}
				if help := f.Lookup("claim-unmanaged").Usage; !strings.Contains(help, "--controllers=-job-controller,*") {
					t.Errorf("the help of %s lacks the flag of kube-controller-manager: %s", program, help)
				}
			}
		})
	}
}

// The mode of events reaches the bus, from the flag and from its twin; structured unless told otherwise.
func TestEventMode(t *testing.T) {
	for _, tt := range []struct {
		args, env []string
		want      cloudevent.Mode
	}{
		{nil, nil, cloudevent.Structured},
		{[]string{"--event-mode=binary"}, nil, cloudevent.Binary},
		{nil, []string{"JOBSTREAM_EVENT_MODE", "binary"}, cloudevent.Binary},
		{[]string{"--event-mode=structured"}, []string{"JOBSTREAM_EVENT_MODE", "binary"}, cloudevent.Structured},
	} {
		c, f := ReconcilerDefaults(), pflag.NewFlagSet("reconciler", pflag.ContinueOnError)
		c.AddFlags(f)
		if err := errors.Join(f.Parse(tt.args), takeEnv(f, env(tt.env...))); err != nil {
			t.Fatal(err)
		}
		if c.Bus.EventMode != tt.want {
			t.Errorf("%v %v: %q, want %q", tt.args, tt.env, c.Bus.EventMode, tt.want)
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
