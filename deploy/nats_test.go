package deploy

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"sigs.k8s.io/yaml"

	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/catalog"
	"github.com/jobstream/jobstream/internal/dev/controlplane"
	"github.com/jobstream/jobstream/internal/finding"
)

// TestAccountsHaveEveryFunction: a reconciler may do with the memory of one function what it may do with that of another.
func TestAccountsHaveEveryFunction(t *testing.T) {
	accounts := string(file(t, "nats/accounts.conf"))
	subjects := func(f catalog.Name) (n int) {
		for _, end := range []string{`"`, ".>"} {
			n += strings.Count(accounts, "jobstream_default_state_"+string(f)+end)
		}
		return n
	}
	for _, f := range catalog.Names() {
		if got, want := subjects(f), subjects(catalog.Job); got != want || got == 0 {
			t.Errorf("nats/accounts.conf has %d subjects of the state of function %s, and %d of %s", got, f, want, catalog.Job)
		}
	}
}

// secrets returns the Secrets that credentials.sh prints, by name, each as its files.
func secrets(t *testing.T, args ...string) map[string]map[string][]byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", append([]string{"nats/credentials.sh"}, args...)...).Output()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("no sh here: ", err)
	}
	if _, missing := exec.LookPath("openssl"); missing != nil {
		t.Skip("credentials.sh wants openssl: ", missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string][]byte{}
	for doc := range bytes.SplitSeq(out, []byte("\n---\n")) {
		var secret struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
			Data     map[string][]byte
			Strings  map[string]string `json:"stringData"`
		}
		if err := yaml.UnmarshalStrict(doc, &struct{}{}); err == nil {
			t.Fatalf("an empty document:\n%s", out)
		}
		if err := yaml.Unmarshal(doc, &secret); err != nil || secret.Kind != "Secret" || secret.Metadata.Namespace != "jobstream" {
			t.Fatalf("%v: %s", err, doc)
		}
		files := secret.Data
		if files == nil {
			files = map[string][]byte{}
		}
		for name, text := range secret.Strings {
			files[name] = []byte(text)
		}
		all[secret.Metadata.Name] = files
	}
	return all
}

// mount writes the files as a Secret volume would.
func mount(t *testing.T, sources ...map[string][]byte) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, files := range sources {
		for name, data := range files {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

func file(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The shipped configuration, with the files of credentials.sh, makes a closed server: TLS, a user for each program, and
// monitoring on loopback. The programs work there with the files of their Pods, and the doctor finds nothing open.
func TestShippedNATSIsClosed(t *testing.T) {
	made := secrets(t)
	tls := mount(t, made["nats-tls"])
	conf := strings.NewReplacer("/etc/nats-tls", tls, "0.0.0.0:4222", "127.0.0.1:-1", "127.0.0.1:8222", "127.0.0.1:-1", "/data", t.TempDir()).Replace(string(file(t, "nats/nats.conf")))
	etc := mount(t, made["nats-users"], map[string][]byte{"nats.conf": []byte(conf), "accounts.conf": file(t, "nats/accounts.conf")})
	o, err := server.ProcessConfigFile(filepath.Join(etc, "nats.conf"))
	if err != nil {
		t.Fatal(err)
	}
	if o.HTTPHost != "127.0.0.1" || o.TLSConfig == nil || len(o.Users) != 5 {
		t.Errorf("monitor on %q, TLS %v, %d users", o.HTTPHost, o.TLSConfig != nil, len(o.Users))
	}
	o.NoSigs, o.NoLog = true, true
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("the server is not ready")
	}
	config := func(role bus.Role) bus.Config {
		dir := mount(t, made["nats-user-"+string(role)], map[string][]byte{"ca.crt": made["nats-tls"]["ca.crt"]})
		return bus.Config{Cluster: "default", ConnectTimeout: 5 * time.Minute, URL: strings.Replace(s.ClientURL(), "nats://", "tls://", 1), Role: role, CAFile: filepath.Join(dir, "ca.crt"),
			Credentials: bus.Credentials{UserFile: filepath.Join(dir, "user"), PasswordFile: filepath.Join(dir, "password")}}
	}
	if b, err := bus.Connect(t.Context(), bus.Config{Cluster: "default", URL: s.ClientURL(), CAFile: config(bus.Trigger).CAFile}); err == nil {
		b.Close()
		t.Error("the server accepts a client without credentials")
	}
	for _, role := range []bus.Role{bus.Trigger, bus.Reconciler} {
		b, err := bus.Connect(t.Context(), config(role))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		if role == bus.Trigger {
			if err := errors.Join(b.Publish(t.Context(), events.Fact{Cluster: "default", Key: events.Key{Function: "job", Namespace: "shop", UID: "uid"}, Event: events.PodGone{}}), b.Flush(t.Context())); err != nil {
				t.Error(err)
			}
		}
	}
	v, err := bus.Inspect(t.Context(), config(bus.Reconciler))
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for _, f := range v.Findings(t.Context(), nil, time.Now) {
		if strings.HasPrefix(f.Check, "nats") && f.Level != finding.OK {
			t.Errorf("%+v", f)
		}
	}
}

// Every call creates other credentials, and only the requested ones.
func TestCredentialsAreNew(t *testing.T) {
	one, two := secrets(t, "passwords"), secrets(t, "passwords")
	for _, user := range []string{"trigger", "reconciler", "operator", "reader", "audit"} {
		name := "nats-user-" + user
		if a, b := one[name]["password"], two[name]["password"]; len(a) < 64 || bytes.Equal(a, b) {
			t.Errorf("%s: passwords of %d characters, equal: %v", user, len(a), bytes.Equal(a, b))
		}
	}
	if one["nats-tls"] != nil {
		t.Error("a certificate that was not requested")
	}
	if files := secrets(t, "certificate"); len(files) != 1 || len(files["nats-tls"]["tls.key"]) == 0 {
		t.Errorf("%d Secrets", len(files))
	}
}

// kustomize accepts the shipped files, and the result is closed.
func TestKustomize(t *testing.T) {
	assets, err := controlplane.Assets()
	if err != nil {
		t.Skip("no kubectl: ", err)
	}
	for folder, words := range map[string][]string{
		"nats": {"kind: NetworkPolicy", "secretName: nats-tls", "name: nats-users", "jobstream.dev/subscriber: \"true\"", "include accounts.conf"},
		"base": {"kind: NetworkPolicy", "JOBSTREAM_NATS_URL: tls://nats:4222", "JOBSTREAM_NATS_PASSWORD_FILE: /etc/jobstream/nats/password", "mountPath: /etc/jobstream/nats",
			"name: nats-user-trigger", "name: nats-user-reconciler"},
	} {
		out, err := exec.CommandContext(t.Context(), filepath.Join(assets, "kubectl"), "kustomize", folder).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, w := range words {
			if !strings.Contains(string(out), w) {
				t.Errorf("%s does not say %q", folder, w)
			}
		}
		if folder == "nats" && strings.Contains(string(out), "containerPort: 8222") {
			t.Error("the monitor is a port of the Pod")
		}
	}
}
