package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// password is that of every user.
const password = "s3cret"

// APIPrefix is the subject under which a subscriber with an account of its own calls the JetStream API.
const APIPrefix = "JOBSTREAM.API"

// startGuarded starts a NATS server with deploy/nats/accounts.conf, changed as its comments say: the name of the cluster, and an
// account for each subscriber.
func (s *System) startGuarded(ctx context.Context) (*NATS, error) {
	text, err := os.ReadFile(filepath.Join(Root, "deploy", "nats", "accounts.conf"))
	if err != nil {
		return nil, err
	}
	conf := strings.ReplaceAll(string(text), "default", ClusterName)
	from, to := strings.Index(conf, "\n  AUDIT {\n"), strings.LastIndex(conf, "\n}")
	if from < 0 || to < from {
		return nil, errors.New("accounts.conf has no account AUDIT at its end")
	}
	audit, users := conf[from:to], []string{"trigger", "reconciler", "operator", "reader"}
	conf = conf[:from]
	subscribers := s.config.Subscribers
	if s.config.Deployed && len(subscribers) == 0 {
		subscribers = []string{"audit"}
	}
	for _, name := range subscribers {
		conf += strings.NewReplacer("AUDIT", strings.ToUpper(name), "audit", name).Replace(audit)
		users = append(users, name)
	}
	var passwords strings.Builder
	for _, name := range users {
		fmt.Fprintf(&passwords, "%s_PASSWORD: %s\n", strings.ToUpper(name), password)
	}
	files := map[string]string{
		"users.conf":    passwords.String(),
		"accounts.conf": conf + "\n}\n",
		"nats.conf":     "max_payload: 8MB\njetstream {}\ninclude accounts.conf\n",
	}
	n := &NATS{user: "operator"}
	if s.config.Deployed {
		if err := s.shipped(ctx, n, files); err != nil {
			return nil, err
		}
	}
	for name, text := range files {
		if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return startNATS(ctx, n, s.config.Programs.NATS, s.config.Dir, "-config", s.path("nats.conf"))
}
