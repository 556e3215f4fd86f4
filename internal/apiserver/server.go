// Package apiserver checks an API server for jobstream: its version, its clock, and its definition of ScheduledJobs.
// The reconciler's doctor uses it with an operator's rights, the plugin's doctor with a user's.
package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jobstream/jobstream/internal/finding"
)

const (
	// checkTimeout is long enough for a slow TLS handshake and short enough for a person who waits.
	checkTimeout = 10 * time.Second
	// managedByMinor is the minor version of Kubernetes 1 from which on spec.managedBy cannot be switched off.
	managedByMinor = 35
	// managedByBetaMinor is the one from which on it is at least on by default.
	managedByBetaMinor = 32
	// dateStep is the resolution of an HTTP server's Date.
	dateStep = time.Second
	// skewWarn is beyond what NTP allows and the Date cannot explain; from skewFail on, schedules are visibly early or late.
	skewWarn, skewFail = 2 * time.Second, 30 * time.Second
)

// Inspection configures the checks.
type Inspection struct {
	Client kubernetes.Interface
	// Config is the one that Client was made of.
	Config *rest.Config
	// Now is the clock of this program.
	Now func() time.Time
}

// ManagedByIsFinal reports whether an API server of that version hands Jobs over by spec.managedBy, whatever its feature gates are.
func ManagedByIsFinal(v version.Info) bool { return VersionWarning(v) == "" }

// VersionWarning is what is wrong with the version for Jobs with spec.managedBy; "" where nothing is.
func VersionWarning(v version.Info) string {
	minor, err := strconv.Atoi(strings.TrimRight(v.Minor, "+"))
	switch {
	case v.Major != "1" || err != nil:
		return "the API server's version is unknown to us: spec.managedBy of Jobs needs Kubernetes 1.35, or 1.32 with the feature gate JobManagedBy"
	case minor < managedByBetaMinor:
		return "the API server is older than Kubernetes 1.32: spec.managedBy of Jobs is off unless its feature gate JobManagedBy is switched on"
	case minor < managedByMinor:
		return "the API server is older than Kubernetes 1.35: make sure that its feature gate JobManagedBy has not been switched off"
	}
	return ""
}

// Server requests the version, and reads the clock in the response's header. ok reports whether there was a response.
func (i Inspection) Server(ctx context.Context) (all []finding.Finding, ok bool) {
	const check = "api server"
	fail := func(err error) ([]finding.Finding, bool) {
		return []finding.Finding{finding.Worry(check, finding.Fail, `try "kubectl version" with the same kubeconfig`, "cannot be asked at %s: %v", i.Config.Host, err)}, false
	}
	client, err := rest.HTTPClientFor(i.Config)
	if err != nil {
		return fail(err)
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	url := i.Client.Discovery().RESTClient().Get().AbsPath("/version").URL().String()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fail(err)
	}
	if warm, err := client.Do(q.Clone(ctx)); err == nil { // the handshakes must not count as travel time
		warm.Body.Close()
	}
	sent := i.Now()
	answer, err := client.Do(q)
	came := i.Now()
	if err != nil {
		return fail(err)
	}
	defer answer.Body.Close()
	var v version.Info
	if err := json.NewDecoder(answer.Body).Decode(&v); answer.StatusCode != http.StatusOK || err != nil {
		return fail(fmt.Errorf("it answers %s: wrong credentials, or no API server", answer.Status))
	}
	if w := VersionWarning(v); w != "" {
		all = append(all, finding.Worry(check, finding.Warn, "upgrade it, or switch the feature gate JobManagedBy on", "%s at %s: %s", v.GitVersion, i.Config.Host, w))
	} else {
		all = append(all, finding.Good(check, "%s at %s", v.GitVersion, i.Config.Host))
	}
	return append(all, skew(answer.Header.Get("Date"), sent, came)), true
}

// skew compares the clock in a Date header with the local one: the header's second had begun when the response was made, and not
// ended.
func skew(date string, sent, came time.Time) finding.Finding {
	const check = "clock of the api server"
	theirs, err := http.ParseTime(date)
	if err != nil {
		return finding.Good(check, "not visible: the answer has no Date")
	}
	doubt := came.Sub(sent)/2 + dateStep/2
	ahead := theirs.Add(dateStep / 2).Sub(sent.Add(came.Sub(sent) / 2))
	return finding.Skew(check, ahead, doubt, skewWarn, skewFail)
}
