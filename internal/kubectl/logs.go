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
	// logsAtOnce is the number of Pods whose logs are read at once. The others follow later; kubelets keep logs as long as their
	// Pods exist.
	logsAtOnce = 50
	// lastWords is how long the remaining logs may take after the Job has ended.
	lastWords = 10 * time.Second
)

// podLogs prints the output of one Job's Pods. It reads every attempt of a container once, from its beginning; a restart by the
// kubelet in the same Pod is another attempt.
type podLogs struct {
	client  *client
	want    func(*corev1.Pod) bool // reports whether to print the Pod's logs
	prefix  func(*corev1.Pod) string
	slots   chan struct{} // one for each log being read
	reading sync.WaitGroup
	pods    map[types.UID]*attempts // used by one goroutine only

	mu   sync.Mutex // keeps lines whole
	out  io.Writer
	view *view // prints errors
}

// attempts are the attempts of one Pod's container.
type attempts struct {
	latest int32
	read   chan struct{} // closed when the latest attempt has been read
}

// newPodLogs prepares to print the logs of the Job's Pods.
func newPodLogs(c *client, j *batchv1.Job, out io.Writer, v *view) *podLogs {
	return &podLogs{client: c, want: func(*corev1.Pod) bool { return true }, prefix: prefixOf(j),
		slots: make(chan struct{}, logsAtOnce), pods: map[types.UID]*attempts{}, out: out, view: v}
}

// podsOf returns the options that select the Pods of a Job.
func podsOf(j *batchv1.Job) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: labels.Set{batchv1.ControllerUidLabel: string(j.UID)}.String()}
}

// begin starts to print the logs of the Job's Pods, until ctx ends. The caller calls finish when the Job has ended: it waits for
// the remaining output, and nothing is printed after it returns.
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
				pods, _, err = l.client.pods().list(ctx, o) // includes Pods that the watch has not shown yet
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

// see starts to read the attempts of a Pod's container that have not been read. The kubelet keeps the last two.
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

// attemptOf returns how often the first container has been restarted.
func attemptOf(p *corev1.Pod) (attempt int32, started bool) {
	if len(p.Status.ContainerStatuses) == 0 {
		return 0, false
	}
	s := p.Status.ContainerStatuses[0]
	return s.RestartCount, s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil
}

// read prints one attempt of the Pod's container, line by line, until it ends. A log request returns the latest attempt or the
// one before, so read first determines the number of the latest.
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
			return fmt.Errorf("attempt %d is gone: the kubelet has restarted the container %d times since", attempt+1, latest-attempt)
		}
	}
	return l.copy(ctx, p, o)
}

// copy prints the container's logs for the options.
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
		case err == io.EOF: //nolint:errorlint // ReadString returns io.EOF itself
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
		line += "\n" // the next line may come from another Pod
	}
	_, _ = io.WriteString(l.out, prefix+line)
}

func (l *podLogs) complain(format string, args ...any) {
	l.view.Note("warning: " + fmt.Sprintf(format, args...))
}

// prefixOf returns the prefix of a Pod's lines: its index, or else its name.
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
