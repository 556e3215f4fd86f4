package controlplane_test

import (
	"os"
	"strings"
	"testing"

	"github.com/jobstream/jobstream/internal/dev/controlplane/assets"
)

// The versions stand in Go, for the name of the cache folder, and in go.mod files, for the build.
func TestModulesPinTheVersionsThatAssetsName(t *testing.T) {
	t.Parallel()
	_, staging, _ := strings.Cut(assets.KubernetesVersion, ".") // 1.36.3 is published as v0.36.3
	kubernetes := []string{"k8s.io/kubernetes v" + assets.KubernetesVersion, "k8s.io/apiserver => k8s.io/apiserver v0." + staging}
	for file, pins := range map[string][]string{
		"kubernetes/go.mod": kubernetes,
		"../go.mod":         append(kubernetes, "k8s.io/api => k8s.io/api v0."+staging),
		"../../go.mod":      {"k8s.io/api v0." + staging},
		"etcd/go.mod":       {"go.etcd.io/etcd/server/v3 v" + assets.EtcdVersion},
	} {
		mod, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, pin := range pins {
			if !strings.Contains(string(mod), pin+"\n") && !strings.Contains(string(mod), pin+" ") {
				t.Errorf("%s does not say %q, which internal/dev/controlplane/assets builds", file, pin)
			}
		}
	}
}
