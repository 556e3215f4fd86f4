package kubectl

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

const (
	// mostNames is the largest number of names offered; namesPage is the number of objects read per request.
	mostNames = 200
	namesPage = 500
)

// completer is the program that kubectl runs to complete the command line of this plugin: the plugin's binary under another name,
// with the words up to the cursor as arguments (KEP-2379, "Shell Completion Support").
const completer = "kubectl_complete-jobstream"

// completes turns the arguments that kubectl passes to the completer into the plugin's own.
func completes(args []string) []string {
	if filepath.Base(args[0]) != completer {
		return args
	}
	return append([]string{"kubectl-jobstream", cobra.ShellCompRequestCmd}, args[1:]...)
}

// addCompletion adds completion of arguments and flags to all commands. A command that is not in the table completes no
// arguments.
func addCompletion(t *tool, root *cobra.Command) {
	jobs, scheduledJobs, both := t.completeNames(jobKind), t.completeNames(v1alpha1.ScheduledJobKind), t.completeNames(v1alpha1.ScheduledJobKind, jobKind)
	arguments := map[string]cobra.CompletionFunc{
		"run":   afterName,
		"watch": jobs, "wait": jobs,
		"logs": onlyOne(jobs), "rerun": onlyOne(jobs), "stop": jobs,
		"next": scheduledJobs, "history": onlyOne(scheduledJobs), "trigger": onlyOne(scheduledJobs), "backfill": onlyOne(scheduledJobs),
		"suspend": orKinds(both), "resume": orKinds(both), "why": onlyOne(both),
		"decisions": onlyOne(both), "replay": onlyOne(both),
		"convert": func(c *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if to, err := c.Flags().GetString("to"); err == nil && to == cronJobKind {
				return scheduledJobs(c, args, word)
			}
			return t.completeNames(cronJobKind)(c, args, word)
		},
	}
	server := []string{"none", "server"}
	flags := map[string]cobra.CompletionFunc{ // by flag name, or by command and flag name
		"namespace":       t.completeNamespaces,
		"context":         t.completeKubeconfig(func(c api.Config) []string { return slices.Collect(maps.Keys(c.Contexts)) }),
		"cluster":         t.completeKubeconfig(func(c api.Config) []string { return slices.Collect(maps.Keys(c.Clusters)) }),
		"user":            t.completeKubeconfig(func(c api.Config) []string { return slices.Collect(maps.Keys(c.AuthInfos)) }),
		"restart":         words(string(corev1.RestartPolicyOnFailure), string(corev1.RestartPolicyNever)),
		"dry-run":         words("none", "client", "server"),
		"suspend dry-run": words(server...), "resume dry-run": words(server...), "stop dry-run": words(server...), "convert dry-run": words(server...),
		"events type": words(eventNames()...),
		"convert to":  words(v1alpha1.ScheduledJobKind, cronJobKind),
	}
	for _, c := range append(root.Commands(), root) {
		if c.ValidArgsFunction = arguments[c.Name()]; c.ValidArgsFunction == nil {
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
		register := func(f *pflag.Flag) {
			complete := flags[c.Name()+" "+f.Name]
			if complete == nil {
				complete = flags[f.Name]
			}
			switch {
			case f.Annotations[formatsAnnotation] != nil:
				complete = words(f.Annotations[formatsAnnotation]...)
			case complete == nil && takesFile(f):
				return
			case complete == nil:
				complete = cobra.NoFileCompletions
			}
			_ = c.RegisterFlagCompletionFunc(f.Name, complete) // fails for an inherited flag that is registered already
		}
		c.LocalFlags().VisitAll(register)
	}
}

// takesFile reports whether the shell is to complete a file name.
func takesFile(f *pflag.Flag) bool {
	return slices.Contains([]string{"filename", "kubeconfig", "per-completion-env", "certificate-authority", "client-certificate", "client-key", "cache-dir", "template",
		"nats-user-file", "nats-password-file", "nats-nkey-seed-file", "nats-token-file", "nats-credentials", "nats-ca", "nats-cert", "nats-key"}, f.Name)
}

// completeNames completes the names of objects of the kinds, as NAME and as KIND/NAME. A name shared by a ScheduledJob and a Job
// means the ScheduledJob, as it does for suspend.
func (t *tool) completeNames(kinds ...string) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		prefix, of := "", kinds
		if kindWord, _, typed := strings.Cut(word, "/"); typed {
			kind, known := kindCalled(kindWord, kinds)
			if !known {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			prefix, of = kindWord+"/", []string{kind}
		}
		ctx, cancel := context.WithTimeout(c.Context(), t.completionTime)
		defer cancel()
		var all []string
		for _, kind := range of {
			for _, name := range t.names(ctx, kind, strings.TrimPrefix(word, prefix)) {
				if slices.Contains(all, name) {
					name = strings.ToLower(kind) + "/" + name
				}
				all = append(all, prefix+name)
			}
		}
		return slices.DeleteFunc(all, func(name string) bool { return slices.Contains(args, name) }), cobra.ShellCompDirectiveNoFileComp
	}
}

// onlyOne is for commands with a single argument.
func onlyOne(names cobra.CompletionFunc) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(c, args, word)
	}
}

// orKinds also completes kinds, when flags select the objects.
func orKinds(names cobra.CompletionFunc) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if c.Flags().Changed("selector") || c.Flags().Changed("all-namespaces") {
			return words("jobs", "scheduledjobs")(c, args, word)
		}
		return names(c, args, word)
	}
}

// afterName is for commands whose first argument is a new name, followed by a command line.
func afterName(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}

// words completes one of the words. The shell adds no blank after one that ends with =.
func words(all ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, word string) (found []cobra.Completion, _ cobra.ShellCompDirective) {
		directive := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		for _, w := range all {
			if strings.HasPrefix(w, word) && !slices.Contains(args, w) {
				found = append(found, w)
			}
		}
		if len(found) == 1 && strings.HasSuffix(found[0], "=") {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		return found, directive
	}
}

// completeKubeconfig completes names from the kubeconfig. It reads a file and sends no request.
func (t *tool) completeKubeconfig(names func(api.Config) []string) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		config, err := t.config.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all := names(config)
		slices.Sort(all)
		return words(all...)(c, args, word)
	}
}

// resources maps each kind whose names are completed to its resource.
var resources = map[string]schema.GroupVersionResource{
	jobKind:                   batchv1.SchemeGroupVersion.WithResource("jobs"),
	cronJobKind:               batchv1.SchemeGroupVersion.WithResource("cronjobs"),
	v1alpha1.ScheduledJobKind: v1alpha1.GroupVersion.WithResource(v1alpha1.ScheduledJobResource),
	namespaceKind:             corev1.SchemeGroupVersion.WithResource("namespaces"),
}

// namespaceKind is the kind Namespace.
const namespaceKind = "Namespace"

func (t *tool) completeNamespaces(c *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return t.names(c.Context(), namespaceKind, word), cobra.ShellCompDirectiveNoFileComp
}

// names returns the names of the kind's objects that begin with prefix, as many as arrive in time: a user who presses Tab gets
// neither an error nor a long wait.
func (t *tool) names(ctx context.Context, kind, prefix string) []string {
	ctx, cancel := context.WithTimeout(ctx, t.completionTime)
	defer cancel()
	pages := make(chan []string)
	go func() { // a kubeconfig may run a program that prompts for a password
		defer close(pages)
		for page := range t.namePages(ctx, kind) {
			select {
			case pages <- page:
			case <-ctx.Done():
				return
			}
		}
	}()
	var found []string
	for {
		select {
		case page, more := <-pages:
			for _, name := range page {
				if strings.HasPrefix(name, prefix) && len(found) < mostNames {
					found = append(found, name)
				}
			}
			if !more || len(found) == mostNames {
				return found
			}
		case <-ctx.Done():
			return found
		}
	}
}

// namePages yields the names of all objects of the kind, page by page, until an error. It requests metadata only.
func (t *tool) namePages(ctx context.Context, kind string) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		config, err := t.config.ToRESTConfig()
		if err != nil {
			return
		}
		config.UserAgent, config.WarningHandler = fieldManager, rest.NoWarnings{}
		client, err := metadata.NewForConfig(config)
		if err != nil {
			return
		}
		namespace := ""
		if kind != namespaceKind {
			if namespace, _, err = t.namespace(); err != nil {
				return
			}
		}
		o := metav1.ListOptions{Limit: namesPage}
		for {
			list, err := client.Resource(resources[kind]).Namespace(namespace).List(ctx, o)
			if err != nil {
				return
			}
			var names []string
			for _, item := range list.Items {
				names = append(names, item.Name)
			}
			if o.Continue = list.Continue; !yield(names) || o.Continue == "" {
				return
			}
		}
	}
}
