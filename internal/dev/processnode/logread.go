package processnode

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"strconv"
	"time"
)

// logQuery is what a reader of a log asks for: the parameters of the kubelet's /containerLogs.
type logQuery struct {
	follow, previous, timestamps bool
	since                        time.Time
	tail, limit                  int64  // lines and bytes; negative: all
	stream                       string // "stdout", "stderr" or both: ""
}

func parseLogQuery(q url.Values, now time.Time) (logQuery, error) {
	out := logQuery{tail: -1, limit: -1}
	var errs []error
	flag := func(name string, to *bool) {
		if s := q.Get(name); s != "" {
			v, err := strconv.ParseBool(s)
			*to, errs = v, append(errs, err)
		}
	}
	number := func(name string, to *int64) {
		if s := q.Get(name); s != "" {
			v, err := strconv.ParseInt(s, 10, 64)
			*to, errs = v, append(errs, err)
		}
	}
	flag("follow", &out.follow)
	flag("previous", &out.previous)
	flag("timestamps", &out.timestamps)
	number("tailLines", &out.tail)
	number("limitBytes", &out.limit)
	seconds := int64(-1)
	if number("sinceSeconds", &seconds); seconds >= 0 {
		out.since = now.Add(-time.Duration(seconds) * time.Second)
	}
	if s := q.Get("sinceTime"); s != "" {
		t, err := time.Parse(time.RFC3339, s)
		out.since, errs = t, append(errs, err)
	}
	switch q.Get("stream") {
	case "Stdout":
		out.stream = "stdout"
	case "Stderr":
		out.stream = "stderr"
	}
	return out, errors.Join(errs...)
}

// logLineParts is one line of a log file.
type logLineParts struct {
	stamp, stream string
	text          []byte // with its newline, unless only a part of a line
}

func parseLine(b []byte) (logLineParts, bool) {
	stamp, rest, ok1 := bytes.Cut(b, []byte{' '})
	stream, rest, ok2 := bytes.Cut(rest, []byte{' '})
	flag, text, ok3 := bytes.Cut(rest, []byte{' '})
	if !ok1 || !ok2 || !ok3 {
		return logLineParts{}, false
	}
	if bytes.Equal(flag, []byte{'P'}) {
		text = bytes.TrimSuffix(text, []byte{'\n'})
	}
	return logLineParts{stamp: string(stamp), stream: string(stream), text: text}, true
}

// logReader reads a log while it grows, and while it moves from memory to its file.
type logReader struct {
	*logFile
	file *os.File
}

func (r *logReader) section(s logState, from int64) (io.Reader, error) {
	if !s.moved {
		return bytes.NewReader(s.memory[from:]), nil
	}
	if r.file == nil {
		f, err := os.Open(r.path)
		if err != nil {
			return nil, err
		}
		r.file = f
	}
	return io.NewSectionReader(r.file, from, s.size-from), nil
}

// read writes what the query asks for, and goes on while the run does where it asks to follow.
func (l *logFile) read(ctx context.Context, q logQuery, w io.Writer, flush func()) error {
	r := logReader{logFile: l}
	defer func() { closeAll(r.file) }()
	out := &logWriter{q: q, w: w}
	s := l.state()
	from := int64(0)
	if q.tail >= 0 {
		all, err := r.section(s, 0)
		if err == nil {
			from, err = tailOffset(all, q)
		}
		if err != nil {
			return err
		}
	}
	for {
		fresh, err := r.section(s, from)
		if err == nil {
			err = out.lines(fresh)
		}
		if err != nil || out.full {
			return err
		}
		flush()
		if !q.follow || !s.open {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.changed:
		}
		from = s.size
		s = l.state()
	}
}

// tailOffset is where the last q.tail lines of the stream begin.
func tailOffset(r io.Reader, q logQuery) (int64, error) {
	if q.tail == 0 {
		return io.Copy(io.Discard, r)
	}
	var ring []int64
	at, next := int64(0), 0
	in := bufio.NewReaderSize(r, 2*lineLimit)
	for {
		line, err := in.ReadBytes('\n')
		if p, ok := parseLine(line); ok && (q.stream == "" || q.stream == p.stream) {
			if int64(len(ring)) < q.tail {
				ring = append(ring, at)
			} else {
				ring[next] = at
				next = (next + 1) % len(ring)
			}
		}
		at += int64(len(line))
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
	}
	if len(ring) == 0 {
		return at, nil
	}
	return ring[next], nil
}

// logWriter renders lines for the reader.
type logWriter struct {
	q       logQuery
	w       io.Writer
	written int64
	full    bool
}

func (o *logWriter) lines(r io.Reader) error {
	in := bufio.NewReaderSize(r, 2*lineLimit)
	for !o.full {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			if err := o.line(line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *logWriter) line(b []byte) error {
	p, ok := parseLine(b)
	if !ok || o.q.stream != "" && p.stream != o.q.stream {
		return nil
	}
	if !o.q.since.IsZero() {
		if t, err := time.Parse(time.RFC3339Nano, p.stamp); err == nil && t.Before(o.q.since) {
			return nil
		}
	}
	text := p.text
	if o.q.timestamps {
		text = append([]byte(p.stamp+" "), text...)
	}
	if left := o.q.limit - o.written; o.q.limit >= 0 && int64(len(text)) >= left {
		text, o.full = text[:left], true
	}
	n, err := o.w.Write(text)
	o.written += int64(n)
	return err
}
