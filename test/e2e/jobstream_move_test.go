package e2e

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// deploy/README.md describes how to move to trigger, reconciler and a separate NATS server: stop jobstream, start them. Nothing
// of jobstream's bus is moved.
func TestMoveFromJobstream(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		stop, move int // which comes first
	}{
		{"stop it before the others start, as the document describes", 0, 1},
		{"by mistake, stop it when the others already run", 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			move(t, tt.stop, tt.move)
		})
	}
}

func move(t *testing.T, stopAt, startAt int) {
	s := own(t, harness.Config{Bare: true})
	n := arrive(t, s)
	p := n.start("bin/jobstream --install-crds")
	n.succeeds("bin/kubectl-jobstream run done --image=busybox --wait -- true")
	tick := n.Schedule(harness.Every("tick", "*/3 * * * * *", "exit 0", harness.KeepAll, func(j *v1alpha1.ScheduledJobSpec) {
		j.CatchUp = v1alpha1.CatchUpAll // then no time is missed, however long the move takes
	}))
	n.AwaitSchedule("tick", time.Minute, "to have run", func(j *v1alpha1.ScheduledJob) bool { return j.Status.Successful > 0 })
	w := n.applyTwenty("moved")
	n.inTheMiddle(w)
	steps := [2]func() error{}
	steps[stopAt] = p.Stop // as Ctrl-C does
	steps[startAt] = func() error {
		err := s.StartPrograms(t.Context())
		n.Await("moved", time.Minute, "to go on", func(j *batchv1.Job) bool { return j.Status.Succeeded >= twentyPods/2 })
		return err
	}
	for _, step := range steps {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	if stopAt < startAt {
		n.exact(w)
	} else {
		n.counted(w) // one that knows nothing of the other's plans may create a second Pod for an index
	}

	before := n.Scheduled("tick").Status.Successful
	after := n.AwaitSchedule("tick", time.Minute, "to go on", func(j *v1alpha1.ScheduledJob) bool { return j.Status.Successful > before+1 })
	if after.UID != tick.UID || after.Status.Missed != 0 {
		t.Errorf("%+v", after.Status)
	}
	n.eachOnce(tick)
	n.announcedAnew()
	n.leftBehind()
}

// eachOnce fails the test if two Jobs of the ScheduledJob are for one nominal time.
func (n *newcomer) eachOnce(tick *v1alpha1.ScheduledJob) {
	n.Helper()
	for at, jobs := range n.Runs(tick.UID) {
		if len(jobs) != 1 {
			n.Errorf("%d Jobs for %q", len(jobs), at)
		}
	}
}

// announcedAnew waits for the events of a Job that has ended under jobstream: a subscriber of the new server receives what
// started or ended within the last hour.
func (n *newcomer) announcedAnew() {
	n.Helper()
	received := n.Subscribe()
	for _, job := range []string{"done", "moved"} {
		harness.Until(n, time.Minute, "JobFinish of "+job, func(context.Context) error {
			for _, m := range received.Received() {
				if e, is := m.Event.(events.JobFinished); is && e.Job.Name == job {
					return nil
				}
			}
			return errors.New("not received")
		})
	}
}

// leftBehind reads jobstream's own unread events, from a NATS server on the folder that jobstream has left.
func (n *newcomer) leftBehind() {
	n.Helper()
	folders, err := filepath.Glob(filepath.Join(n.dir, ".local/state/jobstream/*/nats"))
	if err != nil || len(folders) != 1 {
		n.Fatal(folders, err)
	}
	p := &harness.Process{Name: "left", Path: programs(n.TB.(*testing.T)).NATS, Args: []string{"-dir", folders[0]}, LogFile: filepath.Join(n.dir, "left.log")}
	if err := p.Start(); err != nil {
		n.Fatal(err)
	}
	defer func() { _ = p.Stop() }()
	url, err := p.Await(n.Context(), regexp.MustCompile(`listening url=(\S+)`))
	if err != nil {
		n.Fatal(err)
	}
	nc, err := nats.Connect(url, nats.Timeout(timeout))
	if err != nil {
		n.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(timeout))
	if err != nil {
		n.Fatal(err)
	}
	stream, err := js.Stream(n.Context(), "jobstream_"+harness.ClusterName+"_events")
	if err != nil {
		n.Fatal(err)
	}
	info, err := stream.Info(n.Context(), jetstream.WithSubjectFilter("jobstream.events."+harness.ClusterName+"."+n.Namespace+".job.>"))
	if err != nil || len(info.State.Subjects) == 0 {
		n.Errorf("no event is left: %+v, %v", info, err)
	}
}
