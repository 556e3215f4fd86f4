package run

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/functions/pod"
)

// brief describes the objects in a few words: their kinds, and the fields that differ from Kubernetes' defaults.
func brief(o Objects) string {
	var b strings.Builder
	spec, annotations := batchv1.JobSpec{}, o.Owner.GetAnnotations()
	switch owner := o.Owner.(type) {
	case *batchv1.Job:
		spec = owner.Spec
		fmt.Fprintf(&b, "Job %s", owner.Name)
	case *v1alpha1.ScheduledJob:
		spec, annotations = owner.Spec.JobTemplate.Spec, owner.Spec.JobTemplate.Annotations
		fmt.Fprintf(&b, "ScheduledJob %s", owner.Name)
		if owner.Spec.RunAt != nil {
			fmt.Fprintf(&b, " at %s", owner.Spec.RunAt.UTC().Format("2006-01-02T15:04:05Z"))
		}
		if owner.Spec.Schedule != "" {
			fmt.Fprintf(&b, " at %q", owner.Spec.Schedule)
		}
		if owner.Spec.TimeZone != nil {
			fmt.Fprintf(&b, " in %s", *owner.Spec.TimeZone)
		}
	}
	if spec.CompletionMode != nil {
		fmt.Fprintf(&b, " %s", *spec.CompletionMode)
	}
	for _, n := range []struct {
		name  string
		value *int32
	}{{"completions", spec.Completions}, {"parallelism", spec.Parallelism}, {"backoffLimit", spec.BackoffLimit}} {
		if n.value != nil {
			fmt.Fprintf(&b, " %s=%d", n.name, *n.value)
		}
	}
	fmt.Fprintf(&b, " %s", spec.Template.Spec.RestartPolicy)
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		fmt.Fprintf(&b, " %s=%s", strings.TrimPrefix(key, v1alpha1.Group+"/"), annotations[key])
	}
	c := spec.Template.Spec.Containers[0]
	for _, e := range c.Env {
		if e.ValueFrom != nil {
			fmt.Fprintf(&b, " %s=<%s>", e.Name, e.ValueFrom.FieldRef.FieldPath)
		} else {
			fmt.Fprintf(&b, " %s=%q", e.Name, e.Value)
		}
	}
	fmt.Fprintf(&b, " %s%q", c.Image, c.Command)
	if p := o.Parameters; p != nil {
		fmt.Fprintf(&b, "\nConfigMap %s", p.Name)
		for _, key := range slices.Sorted(maps.Keys(p.Data)) {
			fmt.Fprintf(&b, " %s=%q", key, p.Data[key])
		}
	}
	return b.String()
}

// TestBuild: the objects for each set of flags, including flags that imply others.
func TestBuild(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options Options
		want    string
	}{
		{"a command, once", Options{Command: []string{"true"}},
			`Job x OnFailure busybox["true"]`},
		{"the image's own command", Options{},
			`Job x OnFailure busybox[]`},
		{"a list implies completions, an index and parallelism", Options{PerCompletionEnv: []List{{Key: "F", Text: "a b c"}}},
			`Job x Indexed completions=3 parallelism=3 OnFailure per-completion-env=x-env-7 busybox[]` + "\n" + `ConfigMap x-env-7 F="a\nb\nc\n"`},
		{"a long list does not fill the cluster", Options{PerCompletionEnv: []List{{Key: "F", Text: strings.Repeat("a ", 1000)}}, Command: []string{"echo", "$(F)"}},
			`Job x Indexed completions=1000 parallelism=10 OnFailure per-completion-env=x-env-7 busybox["echo" "$(F)"]` + "\n" + `ConfigMap x-env-7 F="` + strings.Repeat(`a\n`, 1000) + `"`},
		{"unless a flag sets it", Options{Completions: new(int32(1000)), Parallelism: new(int32(500))},
			`Job x Indexed completions=1000 parallelism=500 OnFailure busybox[]`},
		{"completions that agree with the list", Options{Completions: new(int32(2)), PerCompletionEnv: []List{{Key: "F", Text: "a b"}}},
			`Job x Indexed completions=2 parallelism=2 OnFailure per-completion-env=x-env-7 busybox[]` + "\n" + `ConfigMap x-env-7 F="a\nb\n"`},
		{"several lists, and variables of them", Options{PerCompletionEnv: []List{{Key: "FRUIT", Text: "apple kiwi"}, {Key: "COLOR", Text: "red green"}}, Env: []string{"WORDS=$(COLOR) $(FRUIT)", "EMPTY="}, Command: []string{"echo", "$(WORDS)"}},
			`Job x Indexed completions=2 parallelism=2 OnFailure per-completion-env=x-env-7 WORDS="$(COLOR) $(FRUIT)" EMPTY="" busybox["echo" "$(WORDS)"]` + "\n" + `ConfigMap x-env-7 COLOR="red\ngreen\n" FRUIT="apple\nkiwi\n"`},
		{"the index in a variable", Options{Completions: new(int32(3)), IndexVariable: "I", Command: []string{"echo", "$(I)"}},
			`Job x Indexed completions=3 parallelism=3 OnFailure I=<metadata.annotations['batch.kubernetes.io/job-completion-index']> busybox["echo" "$(I)"]`},
		{"a work queue", Options{Parallelism: new(int32(4))},
			`Job x parallelism=4 OnFailure busybox[]`},
		{"Pods that fail are not restarted", Options{Restart: "Never", BackoffLimit: new(int32(0))},
			`Job x backoffLimit=0 Never busybox[]`},
		{"what is about failed Pods implies it", Options{BackoffSeconds: new(int32(5)), FailedPodsLimit: new(int32(0))},
			`Job x Never backoff-seconds=5 failed-pods-limit=0 busybox[]`},
		{"once at a time", Options{RunAt: "2015-07-21T16:00:00+02:00", Command: []string{"true"}},
			`ScheduledJob x at 2015-07-21T14:00:00Z OnFailure busybox["true"]`},
		{"by a schedule, with lists", Options{RunAt: "0 14 21 7 *", TimeZone: "Europe/Berlin", BackoffSeconds: new(int32(5)), PerCompletionEnv: []List{{Key: "F", Text: "a b"}}},
			`ScheduledJob x at "0 14 21 7 *" in Europe/Berlin Indexed completions=2 parallelism=2 Never backoff-seconds=5 per-completion-env=x-env-7 busybox[]` + "\n" + `ConfigMap x-env-7 F="a\nb\n"`},
		{"a schedule of the object's own", Options{RunAt: "H/15 * * * *"},
			`ScheduledJob x at "H/15 * * * *" OnFailure busybox[]`},
		{"text that looks like a variable", Options{Command: []string{"make", "X=$$(Y)", "$(TRACEPARENT)", "$(REDIS_SERVICE_HOST)"}},
			`Job x OnFailure busybox["make" "X=$$(Y)" "$(TRACEPARENT)" "$(REDIS_SERVICE_HOST)"]`},
		{"a shell for another program", Options{Command: []string{"timeout", "60", "sh", "-c", "echo $(date)"}},
			`Job x OnFailure busybox["timeout" "60" "sh" "-c" "echo $(date)"]`},
		{"a command of a shell's", Options{Command: []string{"/bin/sh", "-c", "echo $(date)"}},
			`Job x OnFailure busybox["/bin/sh" "-c" "echo $(date)"]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.options.Name, tt.options.Image, tt.options.Suffix = "x", "busybox", "7"
			o, err := Build(tt.options)
			if err != nil {
				t.Fatal(err)
			}
			if got := brief(o); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// TestSplit: one line is split at blanks, several lines are one value each, typed or from a file.
func TestSplit(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"words", "apple banana cherry", []string{"apple", "banana", "cherry"}},
		{"words between any blanks", "  apple\tbanana   cherry ", []string{"apple", "banana", "cherry"}},
		{"a file of one line", "apple banana cherry\n", []string{"apple", "banana", "cherry"}},
		{"a file of lines", "12342.dat\n97283.dat\n38732.dat\n", []string{"12342.dat", "97283.dat", "38732.dat"}},
		{"$(cat FILE), which drops the last line end", "12342.dat\n97283.dat", []string{"12342.dat", "97283.dat"}},
		{"lines of Windows", "a b\r\nc d\r\n", []string{"a b", "c d"}},
		{"empty lines at the end", "a\nb\n\n\n", []string{"a", "b"}},
		{"command lines", "prog -x 1\nprog -x 2\n", []string{"prog -x 1", "prog -x 2"}},
		{"blanks in lines stay", "a \n  b\n", []string{"a ", "  b"}},
		{"one value", "apple", []string{"apple"}},
		{"a value without characters", `--remove-seeds "" --remove-pit`, []string{"--remove-seeds", "", "--remove-pit"}},
		{"lines without characters", "a\n\"\"\n\"\"\n", []string{"a", "", ""}},
		{"letters of all the world", "Äpfel 梨 🍒", []string{"Äpfel", "梨", "🍒"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := List{Key: "F", Text: tt.text}.split()
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// TestRequests: a Job with lists is suspended until its ConfigMap exists; nothing else is ever suspended.
func TestRequests(t *testing.T) {
	lists := []List{{Key: "F", Text: "a b"}}
	for _, tt := range []struct {
		name      string
		options   Options
		suspended bool
		owner     string // the ConfigMap's owner
		third     string
	}{
		{"a Job", Options{}, false, "", ""},
		{"a Job with lists", Options{PerCompletionEnv: lists}, true, "batch/v1 Job x uid-1",
			`{"metadata":{"uid":"uid-1","labels":{"jobstream.dev/suspended-by":null}},"spec":{"suspend":false}}`},
		{"a ScheduledJob with lists", Options{PerCompletionEnv: lists, RunAt: "@daily"}, false, "jobstream.dev/v1alpha1 ScheduledJob x uid-1", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.options.Name, tt.options.Image, tt.options.Suffix = "x", "busybox", "7"
			o, err := Build(tt.options)
			if err != nil {
				t.Fatal(err)
			}
			if j, is := o.First().(*batchv1.Job); is {
				suspended := j.Spec.Suspend != nil && *j.Spec.Suspend
				if suspended != tt.suspended || suspended != (j.Labels[v1alpha1.SuspendedByLabel] == v1alpha1.SuspendedByRun) || *j.Spec.ManagedBy != v1alpha1.DefaultManagedBy {
					t.Errorf("the first is %+v", j)
				}
			}
			if tt.owner != "" {
				c := o.Second("uid-1")
				r := c.OwnerReferences[0]
				if got := fmt.Sprint(r.APIVersion, " ", r.Kind, " ", r.Name, " ", r.UID); got != tt.owner || !*c.Immutable || len(c.OwnerReferences) != 1 {
					t.Errorf("the second is owned by %s: %+v", got, c)
				}
			} else if c := o.Second("uid-1"); c != nil {
				t.Errorf("there is a second: %+v", c)
			}
			if got := string(o.Third("uid-1")); got != tt.third {
				t.Errorf("the third is %s", got)
			}
			for _, m := range o.Manifests() {
				if j, is := m.(*batchv1.Job); is && (j.Spec.Suspend != nil || j.Labels != nil) {
					t.Errorf("the manifest is %+v", j)
				}
			}
		})
	}
}

// TestNotes: commands that are valid, but often meant differently.
func TestNotes(t *testing.T) {
	for _, tt := range []struct {
		name    string
		command []string
		want    []string
	}{
		{"$(F)", []string{"prog", "$(F)"}, nil},
		{"$F in a shell", []string{"sh", "-c", "echo $F"}, nil},
		{"the image's own command", nil, nil},
		{"a name in a variable's own words", []string{"perl", "-e", "print $ENV{F}"}, nil},
		{"$F without a shell", []string{"prog", "$F"}, []string{`prog gets "$F" literally, because no shell runs: write '$(F)' for its value`}},
		{"${F} without a shell", []string{"prog", "-x", "a-${F}.dat"}, []string{`prog gets "${F}" literally, because no shell runs: write '$(F)' for its value`}},
		{"$F that the user's own shell has emptied", []string{"prog", "-start_row", "-end_row"}, []string{"the command does not name F, which prog finds in its environment. If you typed $F, your own shell replaced it by nothing: type '$(F)'"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, err := Build(Options{Name: "x", Image: "busybox", PerCompletionEnv: []List{{Key: "F", Text: "a b"}}, Command: tt.command})
			if err != nil || !slices.Equal(o.Notes, tt.want) {
				t.Errorf("got %q, %v, want %q", o.Notes, err, tt.want)
			}
		})
	}
}

// TestParametersAreRead: the controller reads back the lists written here, value by value.
func TestParametersAreRead(t *testing.T) {
	o, err := Build(Options{Name: "x", Image: "busybox", PerCompletionEnv: []List{{Key: "F", Text: "a\n\"\"\n b c \n\"\"\n"}, {Key: "G", Text: `"" "" $(F) ""`}}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := pod.ReadParameters(o.Parameters)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range p.Count() {
		variables, err := p.At(i)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range variables {
			got = append(got, v.Name+"="+v.Value)
		}
	}
	want := []string{"F=a", "G=", "F=", "G=", "F= b c ", "G=$$(F)", "F=", "G="}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
