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

// refresh is the interval between redraws: short enough to look like motion, and cheap.
const refresh = 100 * time.Millisecond

// view shows the progress of Jobs until it is closed: on a terminal in lines that are redrawn, elsewhere in one line per change.
// It is safe for concurrent use.
type view struct {
	screen *terminal.Screen
	stop   chan struct{}
	ended  sync.WaitGroup

	mu    sync.Mutex
	board progress.Board
}

// newView shows Jobs on out. With live=false it redraws nothing even on a terminal, as when logs are printed there.
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

// see applies tell to the board.
func (v *view) see(tell func(*progress.Board)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	tell(&v.board)
}

// Show records the current state of a Job.
func (v *view) Show(j *batchv1.Job) {
	v.see(func(b *progress.Board) { b.SawJob(j, time.Now()) })
}

// Note prints a line that stays.
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

// Close draws the final state, leaves it on the screen, and restores the terminal.
func (v *view) Close() {
	close(v.stop)
	v.ended.Wait()
	v.refresh()
	v.screen.Keep()
}

// followPods feeds the board with the Pods that o selects, if it draws a map of indexes; without a terminal it does nothing. It
// leaves out succeeded Pods, which the Job's status covers. A user who may not read Pods sees the rest.
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
