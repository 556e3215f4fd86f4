package cluster

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// deployed reads the rules of the one ClusterRole in a file of deploy/base: all that the program may do in a cluster.
func deployed(t *testing.T, file string) []rbacv1.PolicyRule {
	t.Helper()
	f, err := os.Open("../../deploy/base/" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for d := yaml.NewYAMLOrJSONDecoder(f, 4096); ; {
		var role rbacv1.ClusterRole
		if err := d.Decode(&role); err != nil {
			t.Fatalf("no ClusterRole in %s: %v", file, err)
		}
		if role.Kind == "ClusterRole" {
			return role.Rules
		}
	}
}

// TestPermissions acts as two users that may do just what the deployed programs may.
func TestPermissions(t *testing.T) {
	w := newWorld(t)
	as := func(rules []rbacv1.PolicyRule) (kubernetes.Interface, *ScheduledJobs) {
		t.Helper()
		role, err := w.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}, Rules: rules}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: role.Name}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, config, err := NewClient(ClientConfig{Kubeconfig: realCluster(t).Kubeconfig()})
		if err != nil {
			t.Fatal(err)
		}
		config.Impersonate = rest.ImpersonationConfig{UserName: role.Name}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		schedules, err := NewScheduledJobs(config)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, func() string { // the authorizer hears of roles by a watch
			if _, err := client.BatchV1().Jobs("").List(t.Context(), metav1.ListOptions{Limit: 1}); err != nil {
				return err.Error()
			}
			return ""
		})
		return client, schedules
	}

	client, schedules := as(deployed(t, "reconciler-rbac.yaml"))
	actor, err := NewActor(ActorConfig{Client: client, ScheduledJobs: schedules})
	if err != nil {
		t.Fatal(err)
	}
	w.actor = actor
	j, key := w.createJob("pi", wide)
	j0 := only[events.JobObserved](t, w.act(key, statusEffect(j, start))).Job
	if live := w.liveJob("pi"); j0.Version != events.Version(live.ResourceVersion) || len(live.ManagedFields) != 0 {
		t.Errorf("%+v", live.ObjectMeta)
	}
	p := w.createPod(j, key, 0)
	p = only[events.PodObserved](t, w.act(key, effect.RemoveFinalizer{Name: p.Name, UID: p.UID})).Pod
	p = only[events.PodObserved](t, w.act(key, effect.AddFinalizer{Name: p.Name, UID: p.UID, Version: p.Version})).Pod
	if list := only[events.JobListed](t, w.act(key, effect.TakeInventory{ID: "x", Job: "pi"})); len(list.Pods) != 1 {
		t.Errorf("%+v", list)
	}
	only[events.PodGone](t, w.act(key, effect.DeletePod{Name: p.Name, UID: p.UID, Version: p.Version, RemoveFinalizer: true}))
	picky, pickyKey := w.createJob("picky", picky("pi"))
	orphan := w.foreignPod("orphan", map[string]string{"app": "pi"})
	if list := only[events.JobListed](t, w.act(pickyKey, effect.TakeInventory{ID: "x", Job: "picky"})); len(list.Pods) != 1 {
		t.Errorf("%+v", list)
	}
	only[events.PodObserved](t, w.act(pickyKey, adoptEffect(picky, orphan, 0)))
	only[events.PodGone](t, w.act(pickyKey, effect.ReleasePod{Name: "orphan", UID: orphan.UID}))
	w.configMap("good", fruit)
	only[events.ParametersObserved](t, w.act(key, effect.ReadParameters{ConfigMap: "good"}))
	done, doneKey := w.createJob("done")
	only[events.JobObserved](t, w.act(doneKey, deleteEffect(done)))
	sj, schedKey := w.createSchedule("nightly")
	sj = w.liveSchedule(only[events.ScheduledJobObserved](t, w.act(schedKey, scheduleStatusEffect(sj))).ScheduledJob.Name)
	run := only[events.RunObserved](t, w.act(schedKey, createJobEffect(sj, noon))).Run
	only[events.RunObserved](t, w.act(schedKey, effect.FindRun{Name: run.Name}))
	if list := only[events.ScheduleListed](t, w.act(schedKey, effect.TakeInventory{ID: "x"})); len(list.Runs) != 1 {
		t.Errorf("%+v", list)
	}
	only[events.RunGone](t, w.act(schedKey, effect.DeleteRun{Name: run.Name, UID: run.UID}))
	only[events.ScheduledJobObserved](t, w.act(schedKey, effect.DeleteScheduledJob{ScheduledJob: "nightly", Version: events.Version(sj.ResourceVersion)}))
	recorder := NewRecorder(client, "jobstream")
	defer recorder.Close()
	for range 2 { // the second one patches the first
		recorder.Report(&corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: w.ns, Name: "pi", UID: j.UID}, effect.Report{Reason: "Completed", Message: "m"})
	}
	eventually(t, func() string {
		list, err := w.CoreV1().Events(w.ns).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) == 1 && list.Items[0].Count == 2 {
			return ""
		}
		return "one Event that happened twice"
	})

	client, schedules = as(deployed(t, "trigger-rbac.yaml"))
	x := startWatcher(t, &memorySink{}, client, nil, func(c *WatcherConfig) { c.ScheduledJobs, c.Claim.Unmanaged = schedules, true })
	hourly, hourlyKey := w.createSchedule("hourly")
	w.makeRun(hourly, noon)
	eventually(t, func() string {
		if len(of[events.ScheduledJobObserved](x.sink, hourlyKey)) == 0 || len(of[events.RunObserved](x.sink, hourlyKey)) == 0 {
			return "an observation of the ScheduledJob and its Job; log:\n" + x.log.String()
		}
		return ""
	})
	_, lateKey := w.createJob("late")
	eventually(t, func() string {
		if len(of[events.JobObserved](x.sink, lateKey)) == 0 {
			return "an observation of the Job"
		}
		return ""
	})
	p = w.createPod(j, key, 1)
	x.sees(t, key, w.livePod(p.Name))
	x.sees(t, pickyKey, w.livePod("orphan"))
	x.sees(t, key, w.foreignPod("others", j.Spec.Template.Labels, ownedBy(j)))
	x.sees(t, key, w.editPod(p.Name, func(p *corev1.Pod) { p.Labels = nil })) // which takes a look at one Pod
}
