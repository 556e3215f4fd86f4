package processnode

import (
	"bytes"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

const (
	// logLimit ends the log of a run that writes without end before it fills the disk of a development machine.
	logLimit = 64 << 20
	// memoryLimit is the size up to which a log stays in memory: most Pods print little, and creating a file costs more than running
	// them.
	memoryLimit = 16 << 10
	// lineLimit cuts lines that never end, where container runtimes cut them.
	lineLimit = 16 << 10
	// stampFormat has a fixed width, so that the lines of a log file stand in columns.
	stampFormat = "2006-01-02T15:04:05.000000000Z"
)

// logFile is the log of one run: lines of "time stream flag text", the format of container runtimes, flag being F for a
// full line and P for a part of one.
type logFile struct {
	path string // of the file that a long log is moved to

	mu      sync.Mutex
	memory  []byte // all of it, until there is a file
	file    *os.File
	moved   bool
	ended   bool
	size    int64
	changed chan struct{} // closed at the next change; nil without waiting readers
}

// logState is a log at one moment.
type logState struct {
	memory  []byte // all of it, unless it is in the file
	moved   bool
	size    int64
	open    bool            // more may come
	changed <-chan struct{} // closed when there is more, or will be none
}

func (l *logFile) state() logState {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return logState{memory: l.memory, moved: l.moved, size: l.size, open: !l.ended, changed: l.changed}
}

func (l *logFile) write(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || l.size >= logLimit {
		return
	}
	if !l.moved && len(l.memory)+len(b) <= memoryLimit {
		l.memory = append(l.memory, b...)
		l.size += int64(len(b))
	} else {
		l.size += int64(l.append(b))
	}
	l.wake()
}

// append writes to the file, to which the log is moved first. Where that fails the log is cut: a full disk must not end
// the container.
func (l *logFile) append(b []byte) int {
	if !l.moved {
		f, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
		if err != nil {
			return 0
		}
		if _, err := f.Write(l.memory); err != nil {
			f.Close()
			return 0
		}
		l.file, l.memory, l.moved = f, nil, true
	}
	n, _ := l.file.Write(b)
	return n
}

// end marks the log as complete.
func (l *logFile) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
	l.memory = slices.Clip(l.memory)
	l.ended = true
	l.wake()
}

// remove ends the log and removes its file.
func (l *logFile) remove() {
	l.end()
	if l.moved {
		_ = os.Remove(l.path)
	}
}

func (l *logFile) wake() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// copy copies the lines from r until it ends.
func (l *logFile) copy(stream string, r io.Reader) {
	buf := make([]byte, 0, lineLimit)
	var out []byte
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		head := time.Now().UTC().Format(stampFormat) + " " + stream
		out, rest := appendLines(out[:0], head, buf)
		if len(rest) > 0 && (err != nil || len(rest) == cap(buf)) {
			out = append(append(append(append(out, head...), " P "...), rest...), '\n')
			rest = nil
		}
		if len(out) > 0 {
			l.write(out)
		}
		buf = append(buf[:0], rest...)
		if err != nil {
			return
		}
	}
}

// appendLines appends the complete lines of b, each with its head, and returns what is left.
func appendLines(out []byte, head string, b []byte) (lines, rest []byte) {
	for {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			return out, b
		}
		out = append(append(append(out, head...), " F "...), b[:end+1]...)
		b = b[end+1:]
	}
}
