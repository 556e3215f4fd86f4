// Command chain starts Jobs after other Jobs: when the Job A has succeeded, it resumes every suspended Job of the namespace with
// the label example.com/after=A, and removes the label. So a repeated event about A changes nothing.
package main

import (
	"cmp"
	"context"
	"log"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jobstream/jobstream/bus/cloudevent"
	"github.com/jobstream/jobstream/events"
)

func main() {
	client := must(kubernetes.NewForConfig(must(clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))))) // in a Pod: its service account
	js := must(jetstream.NewWithAPIPrefix(must(nats.Connect(cmp.Or(os.Getenv("NATS_URL"), nats.DefaultURL), nats.MaxReconnects(-1))), cmp.Or(os.Getenv("NATS_API_PREFIX"), jetstream.DefaultAPIPrefix)))
	stream, name := cmp.Or(os.Getenv("STREAM"), "jobstream_default_events"), cmp.Or(os.Getenv("CONSUMER"), "chain")
	for messages := must(must(js.Consumer(context.Background(), stream, name)).Messages(jetstream.PullMaxMessages(1))); ; {
		m := must(messages.Next())
		if err := startAfter(client, m); err != nil {
			log.Println("will be tried again:", err)
			_ = m.NakWithDelay(5 * time.Second)
			continue
		}
		_ = m.Ack() // after the effect: a crash in between repeats it
	}
}

// startAfter resumes the Jobs that wait for the Job of the event. An older Job with the same name does not count.
func startAfter(client kubernetes.Interface, m jetstream.Msg) error {
	a := events.JobFinished{}
	if e, err := cloudevent.Decode(m.Headers(), m.Data()); err != nil || e.Type() != events.PublicType(a) || e.DataAs(&a) != nil || a.Result != events.JobSucceeded {
		return nil //nolint:nilerr // a redelivery would be the same
	}
	waiting, err := client.BatchV1().Jobs(a.Job.Namespace).List(context.Background(), metav1.ListOptions{LabelSelector: "example.com/after=" + a.Job.Name})
	for i := 0; err == nil && i < len(waiting.Items); i++ {
		if b := waiting.Items[i]; !b.CreationTimestamp.After(a.End) {
			log.Printf("%s has succeeded: starting %s", a.Job.Name, b.Name)
			_, err = client.BatchV1().Jobs(b.Namespace).Patch(context.Background(), b.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"example.com/after":null}},"spec":{"suspend":false}}`), metav1.PatchOptions{})
		}
	}
	return err
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err) // a restart continues from here
	}
	return v
}
