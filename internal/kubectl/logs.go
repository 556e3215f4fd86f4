package kubectl

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// logsAtOnce is how many Pods' logs are read at once. Those of the others come later; kubelets keep them as long as
	// there are the Pods.
	logsAtOnce = 50
	// lastWords is how long the logs may take that are still to come when the Job has ended.
	lastWords = 10 * time.Second
)

// podLogs prints what the Pods of one Job print. Every attempt of a container is read once, from its beginning: one that the
// kubelet starts again in its Pod is another attempt.
type podLogs struct {
	client  *client
	want    func(*corev1.Pod) bool // whether its logs are asked for
	prefix  func(*corev1.Pod) string
	slots   chan struct{} // held by whoever reads
	reading sync.WaitGroup
	pods    map[types.UID]*attempts // of one goroutine

	mu   sync.Mutex // keeps lines whole
	out  io.Writer
	view *view // is told what is wrong
}

// attempts are those of one Pod's container.
type attempts struct {
	latest int32
	read   chan struct{} // closed when the latest has been read
}

// newPodLogs is for the logs of all Pods of the Job.
func newPodLogs(c *client, j *batchv1.Job, out io.Writer, v *view) *podLogs {
	return &podLogs{client: c, want: func(*corev1.Pod) bool { return true }, prefix: prefixOf(j),
		slots: make(chan struct{}, logsAtOnce), pods: map[types.UID]*attempts{}, out: out, view: v}
}

// podsOf select the Pods of a Job.
func podsOf(j *batchv1.Job) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: labels.Set{batchv1.ControllerUidLabel: string(j.UID)}.String()}
}

// begin begins to print the logs of the Job's Pods, until ctx ends. finish is called when the Job has ended: it waits for what
// is still to come, and when it returns, nothing more is printed.
func (l *podLogs) begin(ctx context.Context, j *batchv1.Job) (finish func()) {
	reading, stopReading := context.WithCancel(ctx)
	watching, stopWatching := context.WithCancel(ctx)
	o := podsOf(j)
	see := func(p *corev1.Pod) { l.see(reading, p) }
	stopped := make(chan error, 1)
	go func() {
		stopped <- l.client.pods().follow(watching, o, eyes[*corev1.Pod]{
			listed: func(pods []*corev1.Pod) bool {
				for _, p := range pods {
					see(p)
				}
				return false
			},
			changed: func(how watch.EventType, p *corev1.Pod) bool {
				if how == watch.Added || how == watch.Modified {
					see(p)
				}
				return false
			},
		})
	}()
	return func() {
		defer stopReading()
		stopWatching()
		err := <-stopped
		if ctx.Err() == nil {
			if !hopeless(err) {
				var pods []*corev1.Pod
				pods, _, err = l.client.pods().list(ctx, o) // those that the watch has not shown yet
				for _, p := range pods {
					see(p)
				}
			}
			if err != nil {
				l.complain("cannot see the Pods: %v", err)
			}
		}
		late := time.AfterFunc(lastWords, func() {
			l.complain("some logs have not come within %v", lastWords)
			stopReading()
		})
		defer late.Stop()
		l.reading.Wait()
	}
}

func (c *client) pods() source[*corev1.Pod] {
	return source[*corev1.Pod]{
		list: func(ctx context.Context, o metav1.ListOptions) ([]*corev1.Pod, string, error) {
			l, err := c.CoreV1().Pods(c.namespace).List(ctx, o)
			if err != nil {
				return nil, "", err
			}
			return pointers(l.Items), l.ResourceVersion, nil
		},
		watch: c.CoreV1().Pods(c.namespace).Watch,
	}
}

// see begins to read the attempts of a Pod's container that have not been read. The kubelet has the last two.
func (l *podLogs) see(ctx context.Context, p *corev1.Pod) {
	attempt, started := attemptOf(p)
	if !started || !l.want(p) {
		return
	}
	a := l.pods[p.UID]
	if a == nil {
		a = &attempts{latest: -1, read: make(chan struct{})}
		close(a.read)
		l.pods[p.UID] = a
	}
	for next := max(a.latest+1, attempt-1); next <= attempt; next++ {
		before, read := a.read, make(chan struct{})
		a.latest, a.read = next, read
		l.reading.Go(func() {
			defer close(read)
			<-before // one after another
			select {
			case l.slots <- struct{}{}:
				defer func() { <-l.slots }()
			case <-ctx.Done():
				return
			}
			if err := l.read(ctx, p, next); err != nil && ctx.Err() == nil {
				l.complain("the logs of the Pod %s: %v", p.Name, err)
			}
		})
	}
}

// attemptOf is how often the first container has been started again.
func attemptOf(p *corev1.Pod) (attempt int32, started bool) {
	if len(p.Status.ContainerStatuses) == 0 {
		return 0, false
	}
	s := p.Status.ContainerStatuses[0]
	return s.RestartCount, s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil
}

// read prints what an attempt of the Pod's container prints, line by line, until it ends. Who asks for logs gets those of the
// latest attempt, or of the one before; so it is asked which that is.
func (l *podLogs) read(ctx context.Context, p *corev1.Pod, attempt int32) error {
	o := &corev1.PodLogOptions{Follow: true}
	if p.Spec.RestartPolicy != corev1.RestartPolicyNever {
		live, err := l.client.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		switch latest, _ := attemptOf(live); {
		case latest == attempt+1:
			o.Previous, o.Follow = true, false
		case latest > attempt:
			return fmt.Errorf("attempt %d is gone: the kubelet has started it %d times since", attempt+1, latest-attempt)
		}
	}
	return l.copy(ctx, p, o)
}

// copy prints the logs of the Pod's container that the options ask for.
func (l *podLogs) copy(ctx context.Context, p *corev1.Pod, o *corev1.PodLogOptions) error {
	o.Container = p.Spec.Containers[0].Name
	stream, err := l.client.CoreV1().Pods(p.Namespace).GetLogs(p.Name, o).Stream(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	prefix, lines := l.prefix(p), bufio.NewReader(stream)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			l.print(prefix, line)
		}
		switch {
		case err == io.EOF: //nolint:errorlint // a reader's end is this value
			return nil
		case err != nil:
			return err
		}
	}
}

func (l *podLogs) print(prefix, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if prefix != "" && line[len(line)-1] != '\n' {
		line += "\n" // the next one may be another Pod's
	}
	_, _ = io.WriteString(l.out, prefix+line)
}

func (l *podLogs) complain(format string, args ...any) {
	l.view.Note("warning: " + fmt.Sprintf(format, args...))
}

// prefixOf tells the lines of several Pods apart: by the index, or else by the Pod's name.
func prefixOf(j *batchv1.Job) func(*corev1.Pod) string {
	several := j.Spec.Completions != nil && *j.Spec.Completions > 1 || j.Spec.Parallelism != nil && *j.Spec.Parallelism > 1
	indexed := j.Spec.CompletionMode != nil && *j.Spec.CompletionMode == batchv1.IndexedCompletion
	return func(p *corev1.Pod) string {
		switch index := p.Annotations[batchv1.JobCompletionIndexAnnotation]; {
		case !several:
			return ""
		case indexed && index != "":
			return "[" + index + "] "
		}
		return "[" + p.Name + "] "
	}
}
