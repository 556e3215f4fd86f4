package controlplane

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func shell(t *testing.T, script string, unasked func(error)) *process {
	t.Helper()
	p, err := run("/bin/sh", []string{"-c", script}, nil, filepath.Join(t.TempDir(), "sh.log"), unasked)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestEndIsReportedWithItsReason(t *testing.T) {
	died := make(chan error, 1)
	p := shell(t, `echo "no such flag" >&2; exit 3`, func(err error) { died <- err })
	<-p.Done()
	err := <-died
	for _, want := range []string{"sh ended by itself", "exit status 3", "no such flag", p.logFile} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

func TestPortTakenIsRecognized(t *testing.T) {
	died := make(chan error, 1)
	shell(t, `echo "listen tcp 127.0.0.1:1: bind: address already in use" >&2; exit 1`, func(err error) { died <- err })
	if err, taken := <-died, new(portTaken); !errors.As(err, &taken) || taken.program != "sh" {
		t.Errorf("%v does not say that the port of sh is taken", err)
	}
}

func TestStartExplainsProgramsThatDoNotWork(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho wrong machine\nexit 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("TMPDIR", t.TempDir())
	_, err := Start(context.Background(), Config{Assets: dir})
	if err == nil || !strings.Contains(err.Error(), "etcd ended by itself") || !strings.Contains(err.Error(), "wrong machine") {
		t.Errorf("error is %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), owner+"-*")); len(left) > 0 {
		t.Errorf("a failed start leaves %v", left)
	}
}

func TestConfigIsValidated(t *testing.T) {
	for name, config := range map[string]Config{
		"port":   {Port: 70000},
		"policy": {AuditPolicy: "kind: Policy"},
		"assets": {Assets: t.TempDir()},
	} {
		if _, err := Start(context.Background(), config); err == nil {
			t.Errorf("%s: a config that cannot work is accepted", name)
		}
	}
}
