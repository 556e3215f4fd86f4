package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// neverAsked are verbs that are granted and never the verb of a request, each with the reason. owners, below, shows both in use.
var neverAsked = map[string]string{
	"update batch/jobs/finalizers":                  "an admission plugin checks it when the reconciler creates a Pod",
	"update jobstream.dev/scheduledjobs/finalizers": "an admission plugin checks it when the reconciler creates a Job",
}

// everybodys are the roles that Kubernetes gives to every authenticated user: to read versions and schemas, and their own
// permissions.
var everybodys = regexp.MustCompile(`of ClusterRole "system:(basic-user|discovery|public-info-viewer)"`)

// terminated is the API server's refusal for a namespace that is being deleted, as the namespaces of finished subtests are:
// there no permission allows a creation.
const terminated = "because it is being terminated"

// The programs have the service accounts, the roles, the users and the permissions of deploy/, TLS and nothing else. While they
// do all that they can do, none of their requests is refused; and at the end each granted verb and subject has been used, and no
// other.
func TestDeployedPermissionsAreExact(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("credentials.sh needs openssl: ", err)
	}
	s := own(t, harness.Config{Deployed: true, NoBuiltInTTL: true, ReconcilerFlags: []string{"--ttl-after-finished"}})
	protocol := s.Protocol()
	streamsAreMadeAndMended(t, s)
	t.Run("Smoke", func(t *testing.T) { smoke(t, s) })
	networkIsClosed(t, s)
	busIsLost(t, s)
	subjectsAreExact(t, s, protocol)
	for _, account := range []string{"jobstream-trigger", "jobstream-reconciler"} {
		verbsAreExact(t, s, account)
	}
	t.Run("Owners", func(t *testing.T) { owners(t, s) })
	strangersAreRefused(t, s)
}

// strangersAreRefused: a client without credentials does not get onto the bus, and neither does an unknown user.
func strangersAreRefused(t *testing.T, s *harness.System) {
	t.Helper()
	where, err := url.Parse(s.NATS.URL)
	if err != nil {
		t.Fatal(err)
	}
	for name, dial := range map[string]func() (*nats.Conn, error){
		"without credentials": func() (*nats.Conn, error) {
			return nats.Connect("tls://"+where.Host, nats.RootCAs(s.NATS.Authority()), nats.Timeout(timeout))
		},
		"of no user": func() (*nats.Conn, error) { return s.NATS.Dial("stranger") },
	} {
		nc, err := dial()
		if err == nil {
			nc.Close()
			t.Errorf("a client %s gets onto the bus", name)
		} else if !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("a client %s is refused for another reason: %v", name, err)
		}
	}
}

// networkIsClosed: the programs have connections to the API server and to NATS, and no others.
func networkIsClosed(t *testing.T, s *harness.System) {
	t.Helper()
	want := map[string]bool{}
	for _, where := range []string{s.ControlPlane.URL(), s.NATS.URL} {
		u, err := url.Parse(where)
		if err != nil {
			t.Fatal(err)
		}
		want[u.Host] = true
	}
	for _, p := range append(s.Triggers, s.Reconcilers...) {
		peers, err := p.Peers()
		if errors.Is(err, errors.ErrUnsupported) {
			t.Log("the connections of the programs are not checked: ", err)
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(peers, want) {
			t.Errorf("%s is connected to %v, want %v", p.Name, peers, want)
		}
	}
}

// verbsAreExact compares the requests of a service account, of which none was refused, with its role.
func verbsAreExact(t *testing.T, s *harness.System, account string) {
	t.Helper()
	role, err := s.Client.RbacV1().ClusterRoles().Get(t.Context(), account, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	granted, used := map[string]bool{}, map[string]bool{}
	for _, verb := range verbs(role.Rules) {
		granted[verb] = true
	}
	requests, err := s.RequestsBy(account)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range requests {
		what := verbOf(r.Verb, r.Group, r.Resource)
		switch {
		case r.Code == http.StatusForbidden && !strings.Contains(r.Message, terminated), r.Code == http.StatusUnauthorized:
			t.Errorf("%s is refused %s in %q: %s", account, what, r.Namespace, r.Message)
		case everybodys.MatchString(r.Allowed):
		case !granted[what] || !strings.Contains(r.Allowed, `of ClusterRole "`+account+`"`):
			t.Errorf("%s uses %s, which its role does not grant: %s", account, what, r.Allowed)
		default:
			used[what] = true
		}
	}
	for _, what := range slices.Sorted(maps.Keys(granted)) {
		if used[what] == (neverAsked[what] != "") {
			t.Errorf("%s is granted %s: used is %v, and the reason not to use it is %q", account, what, used[what], neverAsked[what])
		}
	}
	t.Logf("%s: %d requests, %d of %d verbs used", account, len(requests), len(used), len(granted))
}

// verbs returns those of rules, each in the form of verbOf.
func verbs(rules []rbacv1.PolicyRule) (all []string) {
	for _, r := range rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					all = append(all, verbOf(verb, group, resource))
				}
			}
		}
	}
	return all
}

func verbOf(verb, group, resource string) string {
	return verb + " " + strings.TrimPrefix(group+"/"+resource, "/")
}

// subjectsAreExact waits until each user has used all of its permissions, the rarest of which are used once a minute, and
// compares them with what it has used.
func subjectsAreExact(t *testing.T, s *harness.System, protocol *harness.Protocol) {
	t.Helper()
	permissions, err := s.Permissions()
	if err != nil {
		t.Fatal(err)
	}
	var clients []*harness.NATSClient
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if err := harness.Poll(ctx, func(context.Context) error {
		if clients, err = protocol.Read(); err != nil {
			return harness.Stop(err)
		}
		var idle []error
		for _, user := range []string{"trigger", "reconciler", "audit"} {
			for _, unused := range unused(permissions[user], clients, user) {
				idle = append(idle, fmt.Errorf("user %s does not use: %s", user, unused))
			}
		}
		return errors.Join(idle...)
	}); err != nil {
		t.Error(err)
	}
	for _, c := range clients {
		p, known := permissions[c.User]
		switch {
		case !known && len(c.Published)+len(c.Subscribed) > 0:
			t.Errorf("%q, user %q, is unknown", c.Name, c.User)
			continue
		case p == nil: // the operator, who has all permissions; or a client that has not sent its name yet
			continue
		}
		doctor := c.Name == "jobstream-doctor" // it tries, on purpose, what it must not be allowed
		if len(c.Refused) > 0 && !doctor {
			t.Errorf("%s, user %s, is refused: %s", c.Name, c.User, strings.Join(c.Refused, "; "))
		}
		for what, list := range map[string]struct {
			subjects map[string]bool
			allowed  []string
		}{"publishes to": {c.Published, p.Publish.Allow}, "subscribes to": {c.Subscribed, p.Subscribe.Allow}} {
			for subject := range list.subjects {
				if !doctor && !slices.ContainsFunc(list.allowed, func(a string) bool { return server.SubjectMatchesFilter(subject, a) }) {
					t.Errorf("%s, user %s, %s %s, which is not granted", c.Name, c.User, what, subject)
				}
			}
		}
	}
	for user, p := range permissions {
		if p != nil {
			t.Logf("user %s: %d subjects to publish to and %d to subscribe to, not used %v", user, len(p.Publish.Allow), len(p.Subscribe.Allow), unused(p, clients, user))
		}
	}
}

// unused returns the permissions that no client of the user has used. Of what the doctor does, only its requests count.
func unused(p *server.Permissions, clients []*harness.NATSClient, user string) (all []string) {
	used := func(allowed string, subjects func(*harness.NATSClient) map[string]bool) bool {
		return slices.ContainsFunc(clients, func(c *harness.NATSClient) bool {
			for subject := range subjects(c) {
				if c.User == user && (c.Name != "jobstream-doctor" || strings.HasPrefix(subject, "$JS.API.")) && server.SubjectMatchesFilter(subject, allowed) {
					return true
				}
			}
			return false
		})
	}
	for _, allowed := range p.Publish.Allow {
		if !used(allowed, func(c *harness.NATSClient) map[string]bool { return c.Published }) {
			all = append(all, "publish to "+allowed)
		}
	}
	for _, allowed := range p.Subscribe.Allow {
		if !used(allowed, func(c *harness.NATSClient) map[string]bool { return c.Subscribed }) {
			all = append(all, "subscribe to "+allowed)
		}
	}
	return all
}

// owners shows the purpose of the verbs that no request has: without them the API server allows no creation of an object with an
// owner.
func owners(t *testing.T, s *harness.System) {
	p := s.Space(t)
	const account = "jobstream-reconciler"
	role, err := s.Client.RbacV1().ClusterRoles().Get(t.Context(), account, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return strings.HasSuffix(r.Resources[0], "/finalizers") })
	if _, err := s.Client.RbacV1().ClusterRoles().Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.Schedule(harness.Every("tick", "* * * * * *", "exit 0"))
	for n, await := 0, true; await; n++ { // the API server takes a moment to learn of it
		p.Apply(harness.Shell(fmt.Sprint("pi-", n), "exit 0"))
		harness.Pass(t, time.Second)
		requests, err := s.RequestsBy(account)
		if err != nil {
			t.Fatal(err)
		}
		refused := map[string]bool{}
		for _, r := range requests {
			if r.Code == http.StatusForbidden && r.Namespace == p.Namespace {
				refused[verbOf(r.Verb, r.Group, r.Resource)] = true
			}
		}
		if await = !refused["create pods"] || !refused["create batch/jobs"]; await && n == 120 {
			t.Fatalf("refused are %v, want Pods and Jobs", slices.Collect(maps.Keys(refused)))
		}
	}
}

// as runs a subcommand of the reconciler as the reconciler's own account and user.
func as(t testing.TB, s *harness.System, command string) (code int, out string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), s.Reconcilers[0].Path, append([]string{command}, s.Identity("reconciler")...)...)
	text, err := c.CombinedOutput()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), string(text)
}
