package kubectl

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/catalog"
	"github.com/jobstream/jobstream/internal/flags"
	"github.com/jobstream/jobstream/internal/kubectl/replay"
)

// manyFacts is the number of facts from which the user is told that reading takes a while.
const manyFacts = 5000

// require connects to the bus, for a command that can do nothing without it.
func (n *natsServer) require(ctx context.Context) (*bus.Inspector, error) {
	given, err := n.given()
	if err != nil {
		return nil, err
	}
	if !given {
		return nil, usage{errors.New("this command asks NATS, and --nats-url (" + flags.EnvName("nats-url") + ") does not name a server: write, for example, --nats-url=tls://127.0.0.1:4222 " +
			"after: kubectl -n jobstream port-forward nats-0 4222; --nats-user-file, --nats-password-file and --nats-ca take the files of the Secrets nats-user-reader and nats-tls. " +
			"For the one program jobstream: --nats-url=" + flags.DefaultNATS + " and --nats-token-file with the file token in its folder")}
	}
	return n.connect(ctx)
}

// objectsOf has the objects of each function: their kind, and the public event that each of them has had, if it has done anything.
var objectsOf = map[catalog.Name]struct{ kind, event string }{
	catalog.Job:          {jobKind, "job.start"},
	catalog.ScheduledJob: {v1alpha1.ScheduledJobKind, "schedule.tick.started"},
}

// collect reads all that the bus holds about the object.
func (n *natsServer) collect(ctx context.Context, t *tool, name named) (replay.Record, error) {
	r := replay.Record{APIVersion: replay.Version, Cluster: n.config.Cluster, Name: name.name, Facts: []replay.Fact{}}
	c, err := t.connect()
	if err != nil {
		return r, err
	}
	v, err := n.require(ctx)
	if err != nil {
		return r, err
	}
	defer v.Close()
	if r.Namespace, r.Function, r.UID, err = identify(ctx, c, v, name); err != nil {
		return r, err
	}
	held, err := v.Retained(ctx, r.Key())
	if err != nil {
		return r, err
	}
	if held.Of > manyFacts {
		fmt.Fprintf(t.ErrOut, "reading %d facts\n", held.Of)
	}
	r.Oldest, r.MaxAgeSeconds = held.Oldest, int64(held.MaxAge/time.Second)
	facts, err := v.Facts(ctx, r.Key())
	if err != nil {
		return r, err
	}
	for _, f := range facts {
		r.Facts = append(r.Facts, replay.NewFact(f.Sequence, f.Stored, f.Payload))
	}
	state, ok, err := v.State(ctx, r.Key())
	if ok {
		r.State = &replay.State{Revision: state.Revision, Stored: state.Stored, Data: state.Data}
	}
	r.Collected = t.now().UTC()
	return r, err
}

// identify finds the UID of the object. The API server has it; if the object is gone, its last public event does.
func identify(ctx context.Context, c *client, v *bus.Inspector, name named) (namespace, function string, uid types.UID, err error) {
	var wanted []catalog.Name
	for _, f := range []catalog.Name{catalog.ScheduledJob, catalog.Job} { // of two of one name, the one that makes the Jobs
		if name.kind == "" || name.kind == objectsOf[f].kind {
			wanted = append(wanted, f)
		}
	}
	for _, f := range wanted {
		uid, err := c.uid(ctx, objectsOf[f].kind, name.name)
		if uid != "" || err != nil && !apierrors.IsNotFound(err) {
			return c.namespace, string(f), uid, err
		}
	}
	for _, f := range wanted {
		last, ok, err := v.Announced(ctx, c.namespace, objectsOf[f].event, name.name)
		if err != nil {
			return c.namespace, string(f), "", err
		}
		if uid, is := last.CloudEvent.Extensions()["partitionkey"].(string); ok && is {
			return c.namespace, string(f), types.UID(uid), nil
		}
	}
	what := name.kind
	if what == "" {
		what = v1alpha1.ScheduledJobKind + " or " + jobKind
	}
	return c.namespace, "", "", fmt.Errorf("there is no %s %s in the namespace %s, and no public event of one is stored: -n chooses another namespace", what, name.name, c.namespace)
}

// uid returns the UID of the object of that kind and name.
func (c *client) uid(ctx context.Context, kind, name string) (types.UID, error) {
	if kind == v1alpha1.ScheduledJobKind {
		s, err := c.scheduled.get(ctx, c.namespace, name)
		if err != nil {
			return "", c.answered("cannot read the ScheduledJob "+name, err)
		}
		return s.UID, nil
	}
	j, err := c.BatchV1().Jobs(c.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", c.answered("cannot read the Job "+name, err)
	}
	return j.UID, nil
}

// told is a public event, with the message that the bus stores.
type told struct {
	event events.Public
	// stored is when the bus stored it, text the CloudEvent as JSON.
	stored time.Time
	text   []byte
	// err explains why it could not be read.
	err error
}

// follow calls a function for each public event of the kinds since the time, in all namespaces if the namespace is "".
func (n *natsServer) follow(ctx context.Context, namespace string, kinds []string, since time.Time, more bool, away func(error), do func(told) error) error {
	v, err := n.require(ctx)
	if err != nil {
		return err
	}
	defer v.Close()
	return v.Events(ctx, bus.Wanted{Namespace: namespace, Kinds: kinds, Since: since, Follow: more, Away: away}, func(e bus.StoredEvent) error {
		t := told{stored: e.Stored, text: e.Text, err: e.Err}
		if t.err == nil {
			t.event, t.err = events.FromCloudEvent(e.CloudEvent)
		}
		return do(t)
	})
}
