package kubectl

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newRoot makes the root command with all others. name is the command as the user typed it.
func newRoot(t *tool, name string) *cobra.Command {
	o := &overviewCommand{tool: t}
	root := &cobra.Command{
		Use:         "jobstream",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: name},
		Short:       "Run Jobs on Kubernetes with jobstream, now or by the clock",
		Long: `Run Jobs on Kubernetes with jobstream, now or by the clock.

It needs a kubeconfig, and in the cluster jobstream's trigger and reconciler. Without a command it shows what there is: Jobs that
have not ended, those that have failed in the last 24 hours, and ScheduledJobs with their next times.`,
		Example: `  kubectl jobstream
  kubectl jobstream -A
  kubectl jobstream -l app=shop -o wide`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usage{unknownCommand(c, args[0])}
		},
		RunE:          func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
		SilenceErrors: true, SilenceUsage: true, SuggestionsMinimumDistance: 2,
	}
	o.flags(root)
	root.SetIn(t.In)
	root.SetOut(t.Out)
	root.SetErr(t.ErrOut)
	root.SetUsageTemplate(usageTemplate)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage{unknownFlag(err)} })
	root.CompletionOptions.HiddenDefaultCmd = true
	t.config.AddFlags(root.PersistentFlags())
	root.AddCommand(newRun(t), newWatch(t), newWait(t), newLogs(t), newConvert(t), newNext(t), newList(t), newHistory(t), newTrigger(t), newBackfill(t), newSuspend(t), newResume(t), newStop(t), newRerun(t), newWhy(t), newEvents(t), newDecisions(t), newReplay(t), newDoctor(t))
	addCompletion(t, root)
	return root
}

// usageTemplate is cobra's template without the connection flags, which are kubectl's.
const usageTemplate = `Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}

"{{.CommandPath}} COMMAND --help" says more of each.{{end}}

Flags:
{{if .HasParent}}{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{else}}{{.LocalNonPersistentFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}

-n, --context, --kubeconfig and all other flags of "kubectl options" that are about the connection mean what they mean there.
`

// elsewhere maps commands that users know from other tools to their equivalent here.
var elsewhere = map[string]string{
	"create-workflow": `examples/chain starts one Job after another: make each manifest with "run … --dry-run=client -o yaml"`,
	"create":          `"run NAME --image=IMAGE -- COMMAND" makes a Job`,
}

func unknownCommand(c *cobra.Command, name string) error {
	if instead, known := elsewhere[name]; known {
		return fmt.Errorf("there is no command %q: %s", name, instead)
	}
	if like := c.SuggestionsFor(name); len(like) > 0 {
		return fmt.Errorf("there is no command %q: do you mean %q?", name, like[0])
	}
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return fmt.Errorf("there is no command %q: write %s", name, strings.Join(names, ", "))
}

// instead maps flags of the proposals and of kubectl run to their equivalent here.
var instead = map[string]string{
	"asTemplate":     `write --dry-run=client -o yaml, which prints the manifests instead of creating them`,
	"as-template":    `write --dry-run=client -o yaml, which prints the manifests instead of creating them`,
	"command":        `leave it out: what stands behind -- is the command`,
	"generator":      `leave it out: run makes a Job`,
	"replicas":       `write --completions=N for how many Pods must succeed, and --parallelism=P for how many run at once`,
	"schedule":       `write --run-at="30 2 * * *"`,
	"timeZone":       `write --time-zone=Europe/Berlin`,
	"backoffSeconds": `write --backoff-seconds=N`,
}

func unknownFlag(err error) error {
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	if hint, known := instead[name]; unknown && known {
		return fmt.Errorf("there is no flag --%s: %s", name, hint)
	}
	return err
}

// aliases maps other spellings of flags.
func aliases(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == "runAt" { // the proposals' spelling
		name = "run-at"
	}
	return pflag.NormalizedName(name)
}
