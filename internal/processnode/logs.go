package processnode

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// logs keeps the log of the newest run of every container, and of the run before it, as a kubelet does.
type logs struct {
	mu   sync.Mutex
	pods map[types.UID]map[string]*history
}

type history struct{ current, previous *logFile }

// create opens the log of a new run in the Pod's folder.
func (l *logs) create(dir string, uid types.UID, container string, number int32) (*logFile, error) {
	f, err := createLog(filepath.Join(dir, container+"."+strconv.Itoa(int(number))+".log"))
	if err != nil {
		return nil, err
	}
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
		os.Remove(h.previous.path)
	}
	h.previous, h.current = h.current, f
	return f, nil
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

// forget ends the logs of a Pod; those who follow them see the end.
func (l *logs) forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.pods[uid] {
		h.current.end()
	}
	delete(l.pods, uid)
}
