package processnode

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// logs keeps the log of the newest run of every container, and of the run before it, as a kubelet does.
type logs struct {
	mu   sync.Mutex
	pods map[types.UID]map[string]*history
}

type history struct{ current, previous *logFile }

// create begins the log of a new run.
func (l *logs) create(path string, uid types.UID, container string) *logFile {
	f := &logFile{path: path}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pods == nil {
		l.pods = map[types.UID]map[string]*history{}
	}
	if l.pods[uid] == nil {
		l.pods[uid] = map[string]*history{}
	}
	h := l.pods[uid][container]
	if h == nil {
		h = &history{}
		l.pods[uid][container] = h
	}
	if h.previous != nil {
		h.previous.remove()
	}
	h.previous, h.current = h.current, f
	return f
}

// find returns the log of the newest run, or of the one before it; nil where there is none.
func (l *logs) find(uid types.UID, container string, previous bool) *logFile {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.pods[uid][container]
	switch {
	case h == nil:
		return nil
	case previous:
		return h.previous
	}
	return h.current
}

// forget removes the logs of a Pod; those who follow them see the end.
func (l *logs) forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.pods[uid] {
		h.current.remove()
		if h.previous != nil {
			h.previous.remove()
		}
	}
	delete(l.pods, uid)
}
