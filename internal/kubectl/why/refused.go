package why

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/finding"
)

// refusal is a kind of answer by which the API server refuses a request. $1 in the advice is the first group of the pattern, TEMPLATE
// how the template of the object can be changed, NAMESPACE and OBJECT are the object's.
type refusal struct {
	check   string
	reason  string         // the condition's, if that identifies the answer
	message *regexp.Regexp // or the message
	advice  string
	level   finding.Level
}

// name matches the name of an object of Kubernetes.
const name = `([a-z0-9][-a-z0-9.]*)`

const askWebhook = `; "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations" shows whose it is`

// refusals are the answers, the more specific first.
var refusals = []refusal{
	{"state too large", effect.StateTooLarge, nil, "let fewer Pods exist at once, or delete those that others have made with this Job as their owner", finding.Fail},
	{"too many pods", "TooManyPods", nil, "", finding.Warn},
	{"values", "ConfigMapNotFound", nil, "create the ConfigMap that the annotation " + v1alpha1.PerCompletionEnvAnnotation + " names; the Job then goes on by itself", finding.Fail},
	{"values", "", regexp.MustCompile(`^` + effect.KindReadParameters), "correct the ConfigMap that the annotation " + v1alpha1.PerCompletionEnvAnnotation + " names, or name another one; the Job then goes on by itself", finding.Fail},
	{"quota", "", regexp.MustCompile(`exceeded quota: ` + name), "see what is used with: kubectl describe quota $1 -n NAMESPACE; delete what is not needed, or ask an administrator for more", finding.Fail},
	{"quota", "", regexp.MustCompile(`failed quota: ` + name), "the quota $1 requires requests or limits: TEMPLATE, with those that the message names", finding.Fail},
	{"admission webhook", "", regexp.MustCompile(`admission webhook "` + name + `" denied`), "do what its message demands, or ask the owner of the webhook $1" + askWebhook, finding.Fail},
	{"admission webhook", "", regexp.MustCompile(`failed calling webhook "` + name + `"`), "the API server cannot reach the webhook $1: ask its owner" + askWebhook, finding.Fail},
	{"admission policy", "", regexp.MustCompile(`ValidatingAdmissionPolicy '` + name + `'`), "do what its message demands, or ask the owner of the policy: kubectl describe validatingadmissionpolicy $1", finding.Fail},
	{"pod security", "", regexp.MustCompile(`violates PodSecurity "` + name), "TEMPLATE, with a securityContext that the level $1 allows; or ask an administrator for another level of the namespace", finding.Fail},
	{"service account", "", regexp.MustCompile(`serviceaccount "` + name + `" not found`), "create it with: kubectl create serviceaccount $1 -n NAMESPACE", finding.Fail},
	{"priority class", "", regexp.MustCompile(`no PriorityClass with name ` + name), "list those that exist with: kubectl get priorityclasses; TEMPLATE with one of them, or ask an administrator to create $1", finding.Fail},
	{"limit range", "", regexp.MustCompile(`(?:minimum|maximum) \S+ usage per (?:Container|Pod)`), "see the limits with: kubectl describe limitrange -n NAMESPACE; TEMPLATE within them", finding.Fail},
	{"namespace", string(corev1.NamespaceTerminatingCause), nil, "the namespace is being deleted: create the object in another one", finding.Fail},
	{"name taken", "AlreadyExists", nil, "an object of another owner has that name: see whose it is with kubectl describe, and delete it if it is not needed", finding.Fail},
	{"permissions", "", regexp.MustCompile(` is forbidden: User "([^"]+)" cannot`), "an administrator has to grant that permission to $1: kubectl apply -k deploy", finding.Fail},
	{"template", "Invalid", nil, "TEMPLATE: correct the fields that the message names", finding.Fail},
}

// requests describes the effects in what the API server refuses.
var requests = map[string]string{effect.KindCreatePod: "to create its Pods", effect.KindCreateJob: "to create its Job", effect.KindDeletePod: "to delete the Pod",
	effect.KindDeleteRun: "to delete the Job", effect.KindRemoveFinalizer: "to remove jobstream's finalizer of the Pod", effect.KindAddFinalizer: "to add a finalizer to the Pod",
	effect.KindAdoptPod: "to let it adopt the Pod", effect.KindReleasePod: "to release the Pod", effect.KindWriteJobStatus: "to write its status",
	effect.KindDeleteJob: "to delete it", effect.KindReadParameters: "to read its values"}

// refused reports what the API server refuses at present, as the reconciler records it in a condition.
func (x *jobCauses) refused() {
	if c := x.condition(v1alpha1.RefusedCondition); c != nil {
		x.refuse(c.Reason, c.Message, fmt.Sprintf("for %s", x.ago(c.LastTransitionTime.Time)),
			jobTemplate)
	}
}

// refuse reports a refusal with its reason and message. since describes since when it has been so; template is the advice on how to
// change the template.
func (f *findings) refuse(reason, message, since, template string) {
	what, rest := message, message
	if kind, text, ok := strings.Cut(message, ": "); ok {
		word, object, _ := strings.Cut(kind, " ")
		if request := requests[word]; request != "" {
			what, rest = strings.TrimSpace("the API server refuses "+request+" "+object), text
		}
	}
	if what == message {
		what = "the API server refuses it"
	}
	for _, r := range refusals {
		if r.reason != "" && r.reason != reason {
			continue
		}
		group := ""
		if r.message != nil {
			match := r.message.FindStringSubmatch(message)
			if match == nil {
				continue
			}
			group = match[len(match)-1]
		}
		advice := strings.NewReplacer("$1", clean(group), "TEMPLATE", template, "NAMESPACE", f.namespace).Replace(r.advice)
		if r.check == "values" || r.check == "too many pods" || r.check == "state too large" {
			what = "it does not go on"
		}
		f.add(finding.Worry(r.check, r.level, advice, "%s (%s): %s", what, since, clean(rest)))
		return
	}
	f.fail("refused", "do what the message demands; the request is repeated by itself", "%s (%s): %s: %s", what, since, clean(reason), clean(rest))
}

// lately is how old the latest Event about a failed request may be: these requests are repeated every minute.
const lately = 5 * time.Minute

// failingRequests reports what the API server fails to do.
func (x *jobCauses) failingRequests() {
	var lastPod time.Time
	for i := range x.Pods {
		lastPod = later(lastPod, x.Pods[i].CreationTimestamp.Time)
	}
	if x.condition(v1alpha1.RefusedCondition) == nil {
		x.failing(x.Events, string(x.Object.UID), lastPod, jobTemplate)
	}
}

// jobTemplate is the advice on how to change the template of a Job.
const jobTemplate = "the template of a Job cannot be changed: delete the Job, and create it again"

// failing reports requests for the object that fail. jobstream records them in an Event only, and the built-in controller also
// records there what is refused. An Event from before success is over.
func (f *findings) failing(events []corev1.Event, uid string, success time.Time, template string) {
	e, n := newest(events, uid, "FailedCreate", "FailedDelete", "FailedUpdate")
	at := lastSeen(e)
	if n == 0 || f.now.Sub(at) > lately || success.After(at) {
		return
	}
	if strings.Contains(e.Message, "the API server ") {
		f.warn("api server", `look at the API server, and at webhooks that do not answer: kubectl get --raw="/readyz?verbose"`+askWebhook, "a request fails and is repeated, the last time %s ago: %s", f.ago(at), clean(e.Message))
		return
	}
	f.refuse(e.Reason, e.Message, "the last time "+f.ago(at)+" ago", template)
}

// newest returns the latest Event about the object with one of the reasons, and how many there are; any reason if none is given.
func newest(all []corev1.Event, uid string, reasons ...string) (last corev1.Event, n int) {
	for _, e := range all {
		if string(e.InvolvedObject.UID) != uid || len(reasons) > 0 && !slices.Contains(reasons, e.Reason) {
			continue
		}
		if n++; n == 1 || lastSeen(e).After(lastSeen(last)) {
			last = e
		}
	}
	return last, n
}

// lastSeen returns when the Event was written last. Its writers fill different fields.
func lastSeen(e corev1.Event) time.Time {
	at := later(e.LastTimestamp.Time, e.EventTime.Time)
	if e.Series != nil {
		at = later(at, e.Series.LastObservedTime.Time)
	}
	return cmp.Or(at, e.FirstTimestamp.Time, e.CreationTimestamp.Time)
}
