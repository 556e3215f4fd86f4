// Command chain starts Jobs after other Jobs: when the Job A has succeeded, every Job of its namespace that is suspended and
// labelled example.com/after=A is resumed. The label goes with the resume, so to hear of A once more changes nothing.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"log"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	client := must(kubernetes.NewForConfig(must(clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))))) // in a Pod: its service account
	nc := must(nats.Connect(cmp.Or(os.Getenv("NATS_URL"), nats.DefaultURL), nats.MaxReconnects(-1)))
	js := must(jetstream.NewWithAPIPrefix(nc, cmp.Or(os.Getenv("NATS_API_PREFIX"), jetstream.DefaultAPIPrefix)))
	consumer := must(js.Consumer(context.Background(), cmp.Or(os.Getenv("STREAM"), "jobstream_default_events"), cmp.Or(os.Getenv("CONSUMER"), "chain")))
	for messages := must(consumer.Messages(jetstream.PullMaxMessages(1))); ; {
		m := must(messages.Next())
		if err := startAfter(client, m); err != nil {
			log.Println("will be tried again:", err)
			_ = m.NakWithDelay(5 * time.Second)
			continue
		}
		_ = m.Ack() // after the effect: whoever dies in between does it once more
	}
}

// startAfter resumes the Jobs that wait for the one that the event is about, if that has succeeded.
func startAfter(client kubernetes.Interface, m jetstream.Msg) error {
	type data struct{ Job types.NamespacedName }
	var event struct{ Data data }
	if err := json.Unmarshal(m.Data(), &event); err != nil || !strings.Contains(m.Subject(), ".job.finish.succeeded.") {
		return err
	}
	job, jobs, ctx := event.Data.Job, client.BatchV1().Jobs(event.Data.Job.Namespace), context.Background()
	waiting, err := jobs.List(ctx, metav1.ListOptions{LabelSelector: "example.com/after=" + job.Name})
	for i := 0; err == nil && i < len(waiting.Items); i++ {
		log.Printf("%s has succeeded: starting %s", job, waiting.Items[i].Name)
		_, err = jobs.Patch(ctx, waiting.Items[i].Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"example.com/after":null}},"spec":{"suspend":false}}`), metav1.PatchOptions{})
	}
	return err
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err) // whoever runs us starts us again, and we go on where we were
	}
	return v
}
