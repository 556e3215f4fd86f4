package parity

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/internal/dev/size"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// awaitNoPods waits until the namespace is empty.
func (s *Side) awaitNoPods() {
	s.Helper()
	harness.Until(s, s.timeout, "all Pods to be gone", func(context.Context) error {
		if words := s.phases(); words != "[]" {
			return fmt.Errorf("there are %s", words)
		}
		return nil
	})
}

func goesWithItsPods(s *Side) {
	s.patch(`{"spec":{"ttlSecondsAfterFinished":1}}`) // until now a step had to look at it
	s.awaitGone()
	s.awaitNoPods()
	s.note("the Job and its Pods are gone")
}

func isDeleted(policy metav1.DeletionPropagation) func(*Side) {
	return func(s *Side) {
		s.awaitCounts(1, 0)
		s.awaitReady(3)
		s.deleteJob(policy)
		s.awaitGone()
		s.awaitNoPods()
	}
}

func isOrphaned(s *Side) {
	s.awaitCounts(1, 0)
	s.awaitReady(3)
	s.deleteJob(metav1.DeletePropagationOrphan)
	s.awaitGone()
	harness.Until(s, s.timeout, "the Pods to lose finalizer and owner", func(context.Context) error {
		for _, p := range s.Pods("") {
			if held(&p) || len(p.OwnerReferences) > 0 {
				return fmt.Errorf("%s has finalizers %v and owners %v", p.Name, p.Finalizers, p.OwnerReferences)
			}
		}
		return nil
	})
}

func isDeletedAndKept(s *Side) {
	s.awaitReady(2)
	s.deleteJob(metav1.DeletePropagationBackground)
	harness.Until(s, s.timeout, "the Pods to lose their finalizer", func(context.Context) error {
		if names := harness.Held(s.Pods("")); len(names) > 0 {
			return fmt.Errorf("held are %v", names)
		}
		return nil
	})
	s.open("go")
	s.awaitAll(corev1.PodSucceeded)
	j := s.Job(s.JobName)
	s.note("deleted and kept: conditions %v, Pods %s", j.Status.Conditions, s.phases())
	s.patchMeta(`{"metadata":{"finalizers":null}}`)
	s.awaitGone()
	s.awaitNoPods()
}

// drawLots gives every process another $rank, from 0 on. $here is the folder of the run.
const drawLots = "rank=0; while ! mkdir $here/lot-$rank 2>/dev/null; do rank=$((rank+1)); done\n"

// atTheGate waits until a step opens the gate "go".
const atTheGate = "until [ -e $here/go ]; do sleep 0.2; done\n"

// standIn puts a script in place of a program that the manifest's Pods run, so that the order in which they end does not depend
// on the machine. In the script, the name means the real program.
func standIn(program, script string) func(*Side, *batchv1.Job) {
	return func(s *Side, j *batchv1.Job) {
		s.Helper()
		path := os.Getenv("PATH")
		dir := filepath.Join(s.Dir, "bin")
		text := fmt.Sprintf("#!/bin/sh\nPATH='%s'\nhere='%s'\n%s\n", path, s.Dir, script)
		if err := os.Mkdir(dir, 0o700); err != nil {
			s.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, program), []byte(text), 0o700); err != nil { //nolint:gosec // it is a program
			s.Fatal(err)
		}
		for i := range j.Spec.Template.Spec.Containers {
			c := &j.Spec.Template.Spec.Containers[i]
			c.Env = append(c.Env, corev1.EnvVar{Name: "PATH", Value: dir + ":" + path})
		}
	}
}

// aTenth makes "sleep" ten times as fast in the short form.
func aTenth(s *Side, j *batchv1.Job) {
	if size.SleepDivisor > 1 {
		standIn("sleep", fmt.Sprintf("exec sleep $(($1 / %d))", size.SleepDivisor))(s, j)
	}
}

// byCronJob makes the CronJob controller create the Job, once.
func byCronJob(s *Side, j *batchv1.Job) {
	crons := s.Client.BatchV1().CronJobs(s.Namespace)
	cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: j.Name}, Spec: batchv1.CronJobSpec{
		Schedule: "* * * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: j.Spec}}}
	if _, err := crons.Create(s.Context(), cron, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	harness.Until(s, s.timeout, "the CronJob controller to create a Job", func(ctx context.Context) error {
		list, err := s.Client.BatchV1().Jobs(s.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(list.Items) == 0 {
			return fmt.Errorf("there is none")
		}
		s.JobName, s.JobUID = list.Items[0].Name, list.Items[0].UID
		return nil
	})
	if _, err := crons.Patch(s.Context(), cron.Name, types.MergePatchType, []byte(`{"spec":{"suspend":true}}`), metav1.PatchOptions{}); err != nil {
		s.Fatal(err)
	}
}
