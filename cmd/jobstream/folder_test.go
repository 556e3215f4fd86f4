package main

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
)

// Each API server has a folder of its own, below XDG's folder for state.
func TestFolderOfAnAPIServer(t *testing.T) {
	for _, tt := range []struct {
		name, given, xdg, address, want string
	}{
		{"by default", "", "", "https://127.0.0.1:6443", "/home/me/.local/state/jobstream/127.0.0.1_6443"},
		{"where XDG says", "", "/state", "https://[::1]:6443", "/state/jobstream/___1__6443"},
		{"a relative XDG_STATE_HOME, which is ignored", "", "state", "https://kube.example.com", "/home/me/.local/state/jobstream/kube.example.com"},
		{"behind a gateway", "", "/state", "https://rancher.example.com/k8s/clusters/c-1", "/state/jobstream/rancher.example.com_k8s_clusters_c-1"},
		{"no address leads out of the folder", "", "/state", "https://../..", "/state/jobstream/_"},
		{"--dir", "/bus", "/state", "https://127.0.0.1:6443", "/bus"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("HOME", "/home/me")
			t.Setenv("XDG_STATE_HOME", tt.xdg)
			p := &place{dir: tt.given}
			if err := p.settle(&rest.Config{Host: tt.address}); err != nil || p.dir != tt.want {
				t.Errorf("%s, %v", p.dir, err)
			}
		})
	}
}

// The token stays the same, so that subscribers reconnect after a restart; an empty file is an interrupted write.
func TestToken(t *testing.T) {
	p := &place{dir: t.TempDir()}
	first, err := p.token()
	if err != nil || len(first) < 26 {
		t.Fatalf("%q, %v", first, err)
	}
	if again, err := p.token(); err != nil || again != first {
		t.Errorf("%q, %v", again, err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, "token"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if next, err := p.token(); err != nil || next == first || len(next) < 26 {
		t.Errorf("%q, %v", next, err)
	}
}
