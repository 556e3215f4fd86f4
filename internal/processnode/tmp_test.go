package processnode

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
	"fmt"
	"log/slog"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/jobstream/jobstream/internal/controlplane"
)

func TestTmpBuiltin(t *testing.T) {
	cp, err := controlplane.Start(context.Background(), controlplane.Config{UnsafeNoFsync: true, ControllerManager: true})
	if err != nil { t.Fatal(err) }
	defer cp.Stop()
	n, err := New(Config{REST: cp.RESTConfig(), Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil { t.Fatal(err) }
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	client := kubernetes.NewForConfigOrDie(cp.RESTConfig())
	files, _ := filepath.Glob("../../../shared/data/manifests/*.yaml")
	for _, f := range files {
		b, _ := os.ReadFile(f)
		var j batchv1.Job
		if err := yaml.Unmarshal(b, &j); err != nil || j.Kind != "Job" { continue }
		if _, err := client.BatchV1().Jobs("default").Create(ctx, &j, metav1.CreateOptions{}); err != nil { t.Fatal(err) }
	}
	os.WriteFile("/tmp/kubeconfig.path", []byte(cp.Kubeconfig()), 0o644)
	for i := 0; i < 60; i++ {
		time.Sleep(2 * time.Second)
		jobs, err := client.BatchV1().Jobs("default").List(ctx, metav1.ListOptions{})
		if err != nil { t.Fatal(err) }
		open := 0
		for _, j := range jobs.Items { if len(j.Status.Conditions) == 0 { open++ } }
		if open == 0 || i == 55 {
			time.Sleep(3*time.Second)
			jobs, _ := client.BatchV1().Jobs("default").List(ctx, metav1.ListOptions{})
			for _, j := range jobs.Items {
				fmt.Printf("%s succ=%d failed=%d active=%d idx=%q\n", j.Name, j.Status.Succeeded, j.Status.Failed, j.Status.Active, j.Status.CompletedIndexes)
				for _, c := range j.Status.Conditions { fmt.Printf("   %s %s %s\n", c.Type, c.Reason, c.Message) }
			}
			break
		}
	}
	nodes, _ := client.CoreV1().Nodes().Get(ctx, "dev", metav1.GetOptions{})
	fmt.Printf("node taints %v\n", nodes.Spec.Taints)
	cancel()
	if err := <-done; err != nil { t.Error(err) }
}
