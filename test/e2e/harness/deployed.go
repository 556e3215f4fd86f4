package harness

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/internal/dev/controlplane"
)

// If Config.Deployed is set, the programs have the permissions of deploy/ and no others: the service accounts, with tokens and
// the roles of deploy/base; and its users of NATS, by files, at a server with deploy/nats/nats.conf and a certificate of
// credentials.sh. The API server requires of every client that names an owner the permission to block its deletion (the
// admission plugin OwnerReferencesPermissionEnforcement). The audit log has all their requests, and the log of NATS every line
// of its protocol, without payloads.

// accounts are the service accounts, by the users of NATS.
var accounts = map[string]string{"trigger": "jobstream-trigger", "reconciler": "jobstream-reconciler"}

func username(account string) string { return "system:serviceaccount:jobstream:" + account }

// auditPrograms returns a policy that also logs all requests of the programs.
func auditPrograms(policy string) string {
	return strings.Replace(policy, "rules:\n", "rules:\n- level: Metadata\n  users: ['"+username(accounts["trigger"])+"', '"+username(accounts["reconciler"])+"']\n", 1)
}

// startAccounts creates the service accounts with their roles, and returns when these are in force.
func (s *System) startAccounts(ctx context.Context) error {
	if !s.config.Deployed {
		return nil
	}
	assets, err := controlplane.Assets()
	if err != nil {
		return err
	}
	deploy := filepath.Join(Root, "deploy")
	for _, file := range []string{"namespace.yaml", "base/trigger-rbac.yaml", "base/reconciler-rbac.yaml", "base/flowcontrol.yaml"} {
		c := exec.CommandContext(ctx, filepath.Join(assets, "kubectl"), "--kubeconfig="+s.ControlPlane.Kubeconfig(), "--namespace=jobstream", "apply", "-f", filepath.Join(deploy, file))
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("apply %s: %w: %s", file, err, out)
		}
	}
	for _, account := range accounts {
		if err := s.awaitRole(ctx, account); err != nil {
			return err
		}
		if _, err := s.KubeconfigAs(ctx, account); err != nil {
			return err
		}
	}
	return nil
}

// awaitRole waits until the API server, which learns of roles by a watch, grants the account what both programs may do.
func (s *System) awaitRole(ctx context.Context, account string) error {
	return Poll(ctx, func(ctx context.Context) error {
		review, err := s.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: username(account), ResourceAttributes: &authorizationv1.ResourceAttributes{Resource: "pods", Verb: "list"}}}, metav1.CreateOptions{})
		if err == nil && !review.Status.Allowed {
			err = fmt.Errorf("%s may not list Pods: %s", account, review.Status.Reason)
		}
		return err
	})
}

// KubeconfigAs writes a kubeconfig with a token of a service account in the namespace jobstream, valid for an hour.
func (s *System) KubeconfigAs(ctx context.Context, account string) (file string, err error) {
	token, err := s.Client.CoreV1().ServiceAccounts("jobstream").CreateToken(ctx, account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](3600)}}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	c, err := clientcmd.LoadFromFile(s.ControlPlane.Kubeconfig())
	if err != nil {
		return "", err
	}
	for name := range c.AuthInfos {
		c.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	file = s.path(account + ".kubeconfig")
	return file, clientcmd.WriteToFile(*c, file)
}

// Identity returns the flags that give a program its identity and its peers: that of a user of deploy/nats/accounts.conf.
func (s *System) Identity(user string) []string {
	where, err := url.Parse(s.NATS.URL)
	if err != nil {
		panic(err) // it has been parsed before
	}
	return []string{
		"--kubeconfig=" + s.path(accounts[user]+".kubeconfig"), "--nats-url=tls://" + where.Host, "--cluster-name=" + ClusterName,
		"--nats-user-file=" + s.path(user+".user"), "--nats-password-file=" + s.path(user+".password"), "--nats-ca=" + s.NATS.ca,
	}
}

// shipped adds the files of a server as in deploy/nats. It differs in the ports, which are free ones of loopback, in the
// folders, and in that it logs the protocol.
func (s *System) shipped(ctx context.Context, n *NATS, files map[string]string) error {
	text, err := os.ReadFile(filepath.Join(Root, "deploy", "nats", "nats.conf"))
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "sh", filepath.Join(Root, "deploy", "nats", "credentials.sh"), "certificate").Output()
	if err != nil {
		return fmt.Errorf("credentials.sh, which needs openssl: %w", err)
	}
	var secret corev1.Secret
	if err := yaml.Unmarshal(out, &secret); err != nil {
		return err
	}
	if len(secret.Data["tls.crt"]) == 0 {
		return errors.New("credentials.sh has printed no certificate")
	}
	for name, data := range secret.Data {
		files[name] = string(data)
	}
	for user := range accounts {
		files[user+".user"], files[user+".password"] = user, password
	}
	files["nats.conf"] = strings.NewReplacer("/etc/nats-tls", s.config.Dir, "127.0.0.1:8222", "127.0.0.1:-1").Replace(string(text)) + "\ntrace: true\ntrace_headers: true\n"
	n.ca = s.path("ca.crt")
	return nil
}

// ConfigureNATS adds to the configuration that the server reads at its next start.
func (s *System) ConfigureNATS(text string) error {
	f, err := os.OpenFile(s.path("nats.conf"), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
