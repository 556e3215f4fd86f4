package kubectl

import (
	"context"
	"io"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/jobstream/jobstream/internal/progress"
	"github.com/jobstream/jobstream/internal/progress/terminal"
)

// refresh is how often a view looks at what it has been told: it looks like motion, and costs nothing.
const refresh = 100 * time.Millisecond

// view shows how Jobs fare until it is closed: on a terminal in lines that are redrawn, elsewhere in a line for each change.
// It may be told by several goroutines.
type view struct {
	screen *terminal.Screen
	stop   chan struct{}
	ended  sync.WaitGroup

	mu    sync.Mutex
	board progress.Board
}

// newView shows Jobs on out. With live=false nothing is redrawn on a terminal either, as where logs are printed on it.
func newView(out io.Writer, live bool) *view {
	v := &view{screen: terminal.New(out), stop: make(chan struct{})}
	v.screen.Live = v.screen.Live && live
	v.ended.Go(func() {
		again := time.NewTicker(refresh)
		defer again.Stop()
		for {
			select {
			case <-again.C:
				v.refresh()
			case <-v.stop:
				return
			}
		}
	})
	return v
}

// see has something told to the board.
func (v *view) see(tell func(*progress.Board)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	tell(&v.board)
}

// Show is told the Job as it is now.
func (v *view) Show(j *batchv1.Job) {
	v.see(func(b *progress.Board) { b.SawJob(j, time.Now()) })
}

// Note writes a line that stays.
func (v *view) Note(line string) { v.screen.Say(line) }

func (v *view) refresh() {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if v.screen.Live {
		if lines := v.board.Frame(now, v.screen.Style()); len(lines) > 0 {
			v.screen.Draw(lines)
		}
		return
	}
	for _, c := range v.board.Changes(now) {
		v.screen.Say(c.String())
	}
}

// Close shows the last observation, leaves it where it can be read, and gives the terminal back.
func (v *view) Close() {
	close(v.stop)
	v.ended.Wait()
	v.refresh()
	v.screen.Keep()
}

// followPods tells the board of the Pods that o selects, where there is a map of indexes for it: not where only lines are
// written. Those that have succeeded are not asked for, since the Job says which. Who may not see Pods sees the rest.
func (v *view) followPods(ctx context.Context, c *client, o metav1.ListOptions) (stop func()) {
	if !v.screen.Live {
		return func() {}
	}
	o.FieldSelector = fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)).String()
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		_ = c.pods().follow(ctx, o, eyes[*corev1.Pod]{
			listed: func(pods []*corev1.Pod) bool {
				v.see(func(b *progress.Board) {
					b.ForgetPods()
					for _, p := range pods {
						b.SawPod(p, false)
					}
				})
				return false
			},
			changed: func(how watch.EventType, p *corev1.Pod) bool {
				if how != watch.Bookmark {
					v.see(func(b *progress.Board) { b.SawPod(p, how == watch.Deleted) })
				}
				return false
			},
		})
	})
	return func() { cancel(); done.Wait() }
}
