package processnode

import (
	"bytes"
	"io"
	"os"
	"sync"
	"time"
)

const (
	// logLimit ends the log of a run that writes without end before it fills the disk of a development machine.
	logLimit = 64 << 20
	// lineLimit cuts lines that never end, where container runtimes cut them.
	lineLimit = 16 << 10
	// stampFormat has a fixed width, so that the lines of a log file stand in columns.
	stampFormat = "2006-01-02T15:04:05.000000000Z"
)

// logFile is the log of one run: lines of "time stream flag text", the format of container runtimes, flag being F for a
// full line and P for a part of one.
type logFile struct {
	path string

	mu      sync.Mutex
	file    *os.File
	size    int64
	changed chan struct{} // closed at the next change; nil while nobody waits
}

func createLog(path string) (*logFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	return &logFile{path: path, file: f}, nil
}

// state is how much can be read, whether more may come, and a channel that closes when that changes.
func (l *logFile) state() (size int64, open bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.size, l.file != nil, l.changed
}

func (l *logFile) write(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil || l.size >= logLimit {
		return
	}
	n, _ := l.file.Write(b) // a full disk must not end the container: its log is cut instead
	l.size += int64(n)
	l.wake()
}

// end says that nothing more will be written.
func (l *logFile) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
	l.wake()
}

func (l *logFile) wake() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// copy writes what comes out of r, line by line, until it ends.
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
