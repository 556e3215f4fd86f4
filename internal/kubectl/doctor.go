package kubectl

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/internal/apiserver"
	"github.com/jobstream/jobstream/internal/finding"
	"github.com/jobstream/jobstream/internal/kubectl/doctor"
)

const (
	// doctorTimeout bounds all checks together; a request that has not returned by then becomes a finding.
	doctorTimeout = time.Minute
	// mostListed is the largest number of Jobs, and of ScheduledJobs, that doctor reads: one page of each.
	mostListed = 500
)

// doctorCommand is "doctor" with its flags.
type doctorCommand struct {
	*tool
	all    bool
	output string
}

func newDoctor(t *tool) *cobra.Command {
	d := &doctorCommand{tool: t}
	command := &cobra.Command{
		Use:   "doctor [-A] [-o json]",
		Short: "Report problems with jobstream in this cluster, as far as a user can see them",
		Long: `Report problems with jobstream in this cluster, as far as a user can see them: the API server, the kind ScheduledJob, whether jobstream does
its work, what you may do, and which Jobs and ScheduledJobs of the namespace have a problem. It changes nothing.

The exit code is 1 if a line is FAIL, else 0. "jobstream-reconciler doctor" looks at NATS and the programs themselves.`,
		Example: `  kubectl jobstream doctor
  kubectl jobstream doctor -A -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage{fmt.Errorf("%s: doctor looks at the whole namespace: leave the name out; for one object write: kubectl jobstream why %s", args[0], args[0])}
			}
			return nil
		},
		RunE: func(command *cobra.Command, _ []string) error { return d.run(command.Context()) },
	}
	f := command.Flags()
	f.SortFlags = false
	f.BoolVarP(&d.all, "all-namespaces", "A", false, "look at Jobs and ScheduledJobs of all namespaces")
	f.StringVarP(&d.output, "output", "o", "text", "`format`: text or json")
	f.Lookup("output").Annotations = map[string][]string{formatsAnnotation: {"text", "json"}}
	return command
}

func (d *doctorCommand) run(ctx context.Context) error {
	if d.output != "text" && d.output != "json" {
		return usage{fmt.Errorf("--output=%s: write text or json", d.output)}
	}
	c, err := d.connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	all := d.examine(ctx, c)
	if d.output == "json" {
		e := json.NewEncoder(d.Out)
		e.SetIndent("", "  ")
		err = e.Encode(all)
	} else {
		err = finding.Print(d.Out, all)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(d.ErrOut, "NATS and the programs are not visible with a kubeconfig; an operator checks them with: kubectl -n jobstream exec deploy/jobstream-reconciler -- /jobstream-reconciler doctor")
	if n := finding.Count(all, finding.Fail); n > 0 {
		return fmt.Errorf("%d of %d checks failed", n, len(all))
	}
	return nil
}

// examine runs every check, in the order in which a user needs the results.
func (d *doctorCommand) examine(ctx context.Context, c *client) []finding.Finding {
	server := apiserver.Inspection{Client: c, Config: c.config, Now: time.Now}
	all, ok := server.Server(ctx)
	if !ok {
		return all
	}
	all = append(all, server.Definition(ctx))
	observation, scheduled, problems := d.look(ctx, c)
	all = append(all, problems...)
	if len(problems) == 0 {
		all = append(all, observation.Running())
	}
	all = append(all, permissions(ctx, c, scheduled)...)
	if len(problems) == 0 {
		all = append(all, observation.Problems()...)
	}
	return all
}

// look lists Jobs and ScheduledJobs. scheduled reports whether the cluster has the kind ScheduledJob.
func (d *doctorCommand) look(ctx context.Context, c *client) (s doctor.Observation, scheduled bool, problems []finding.Finding) {
	namespace := c.namespace
	if s.Where = "the namespace " + namespace; d.all {
		namespace, s.Where, s.AllNamespaces = metav1.NamespaceAll, "all namespaces", true
	}
	o := metav1.ListOptions{Limit: mostListed}
	jobs, err := c.BatchV1().Jobs(namespace).List(ctx, o)
	if err != nil {
		return s, true, []finding.Finding{finding.Worry("jobs", finding.Fail, "choose another namespace with -n, or ask an administrator for list on Jobs", "cannot be listed: %v", err)}
	}
	schedules, err := c.scheduled.list(ctx, namespace, o)
	if err != nil && !apierrors.IsNotFound(err) { // ScheduledJobs are optional in a cluster
		return s, true, []finding.Finding{finding.Worry("scheduledjobs", finding.Fail, "choose another namespace with -n, or ask an administrator for list on ScheduledJobs", "cannot be listed: %v", err)}
	}
	s.Jobs, s.ScheduledJobs, s.Now = jobs.Items, schedules.Items, d.now()
	s.More = jobs.Continue != "" || schedules.Continue != ""
	return s, !apierrors.IsNotFound(err), nil
}

// permissions lists the user's rules. If the API server does not know all of them, permissions asks about each need separately.
func permissions(ctx context.Context, c *client, scheduled bool) []finding.Finding {
	review, err := c.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx, &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: c.namespace}}, metav1.CreateOptions{})
	return doctor.Access(c.namespace, scheduled, func(a authorizationv1.ResourceAttributes) (bool, error) {
		if err != nil {
			return false, err
		}
		if granted := doctor.Granted(review.Status.ResourceRules, a); granted || !review.Status.Incomplete {
			return granted, nil
		}
		answer, err := c.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &a}}, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		return answer.Status.Allowed, nil
	})
}
