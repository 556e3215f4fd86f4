package processnode

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

func newLog(t *testing.T) *logFile {
	return &logFile{path: filepath.Join(t.TempDir(), "log")}
}

func readLog(t *testing.T, l *logFile, query string) string {
	t.Helper()
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	q, err := parseLogQuery(values, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := l.read(t.Context(), q, &b, func() {}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Whatever pieces the output comes in, and whether the log is in memory or in its file, it reads as it was written.
func TestLogReadsAsWritten(t *testing.T) {
	long := strings.Repeat("x", 3*lineLimit+17)
	for name, text := range map[string]string{
		"empty": "", "line": "one\n", "no end": "one\ntwo", "blank lines": "\n\none\n\n", "long line": long + "\nshort\n" + long,
		"much": strings.Repeat("a line of some length\n", 2000),
	} {
		for kind, pieces := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "halves": iotest.HalfReader, "data with error": iotest.DataErrReader,
		} {
			l := newLog(t)
			l.copy("stdout", pieces(strings.NewReader(text)))
			l.end()
			if got := readLog(t, l, ""); got != text {
				t.Errorf("%s in %s: read %d bytes of %d", name, kind, len(got), len(text))
			}
			_, err := os.Stat(l.path)
			if inFile := err == nil; inFile != (l.size > memoryLimit) {
				t.Errorf("%s in %s: %d bytes, in a file: %v", name, kind, l.size, inFile)
			}
		}
	}
}

func TestLogQueries(t *testing.T) {
	for _, filler := range []int{0, 1000} { // in memory, and in a file
		l := newLog(t)
		old := fmt.Sprintf("%s stdout F old\n", epoch.Format(stampFormat))
		l.write([]byte(strings.Repeat(old, filler)))
		for i := range 3 {
			fmt.Fprintf(logText{l}, "%s stdout F out%d\n%s stderr F err%d\n", at(float64(10*i)).Format(stampFormat), i, at(float64(10*i+5)).Format(stampFormat), i)
		}
		l.end()
		head := strings.Repeat("old\n", filler)
		for query, want := range map[string]string{
			"":                               head + "out0\nerr0\nout1\nerr1\nout2\nerr2\n",
			"tailLines=2":                    "out2\nerr2\n",
			"tailLines=0":                    "",
			"tailLines=100000":               head + "out0\nerr0\nout1\nerr1\nout2\nerr2\n",
			"tailLines=1&stream=Stdout":      "out2\n",
			"stream=Stderr":                  "err0\nerr1\nerr2\n",
			"sinceTime=2026-01-01T00:00:20Z": "out2\nerr2\n",
			"sinceSeconds=5":                 "",
			"tailLines=2&limitBytes=6":       "out2\ne",
			"tailLines=1&timestamps=true":    "2026-01-01T00:00:25.000000000Z err2\n",
			"tailLines=2&follow=true":        "out2\nerr2\n", // it has ended
		} {
			if got := readLog(t, l, query); got != want {
				t.Errorf("%q after %d lines reads %q and not %q", query, filler, got, want)
			}
		}
	}
	for _, query := range []string{"tailLines=x", "follow=perhaps", "sinceTime=yesterday", "limitBytes="} {
		values, _ := url.ParseQuery(query)
		if _, err := parseLogQuery(values, epoch); (err == nil) != (query == "limitBytes=") {
			t.Errorf("%q: error is %v", query, err)
		}
	}
}

// logText writes lines as they are, columns and all.
type logText struct{ *logFile }

func (l logText) Write(b []byte) (int, error) {
	l.write(b)
	return len(b), nil
}

// A reader that follows sees every byte once while the log grows out of memory into its file.
func TestFollowThroughTheMove(t *testing.T) {
	l := newLog(t)
	var got bytes.Buffer
	var reader sync.WaitGroup
	reader.Go(func() {
		if err := l.read(t.Context(), logQuery{follow: true, tail: -1, limit: -1}, &got, func() {}); err != nil {
			t.Error(err)
		}
	})
	var want strings.Builder
	r, w := io.Pipe()
	reader.Go(func() { l.copy("stdout", r); l.end() })
	for i := range 3000 {
		line := fmt.Sprintf("line %d\n", i)
		want.WriteString(line)
		io.WriteString(w, line)
	}
	w.Close()
	reader.Wait()
	if got.String() != want.String() {
		t.Errorf("followed %d bytes of %d", got.Len(), want.Len())
	}
	l.remove()
	if _, err := os.Stat(l.path); err == nil {
		t.Error("the file is left")
	}
}

func TestLogServer(t *testing.T) {
	l := newLog(t)
	l.copy("stdout", strings.NewReader("hello\n"))
	l.end()
	s, err := newServer("127.0.0.1", func(namespace, pod, container string, previous bool) (*logFile, error) {
		switch {
		case namespace != "ns" || pod != "p":
			return nil, errors.New("no such pod")
		case container == "c" && !previous:
			return l, nil
		}
		return nil, nil
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx) }()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	for path, want := range map[string]string{
		"/containerLogs/ns/p/c":                  "200 hello\n",
		"/containerLogs/ns/p/c?tailLines=x":      "400",
		"/containerLogs/ns/p/c?previous=true":    "400 previous terminated container",
		"/containerLogs/ns/p/later":              "400 container \"later\" in pod \"p\" is waiting to start",
		"/containerLogs/ns/other/c":              "404 no such pod",
		"/containerLogs/ns/p/..%2f..%2fpasswd":   "400 container \"../../passwd\"", // a name like any other
		"/containerLogs/../../../etc/passwd":     "404",
		"/containerLogs/ns/p/c/d":                "404",
		"/healthz":                               "200 ok",
		"/exec/ns/p/c":                           "404",
		"/containerLogs/ns/p/c?limitBytes=3":     "200 hel",
		"/containerLogs/ns/p/c?follow=true":      "200 hello\n",
		"/containerLogs/ns/p/c?timestamps=false": "200 hello\n",
	} {
		r, err := client.Get(fmt.Sprintf("https://127.0.0.1:%d%s", s.port(), path))
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if got := fmt.Sprint(r.StatusCode, " ", string(b)); !strings.HasPrefix(got, want) {
			t.Errorf("%s answers %q and not %q", path, got, want)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestSlots(t *testing.T) {
	s := newSlots(1)
	woken := make(chan string, 10)
	wake := func(name string) func() { return func() { woken <- name } }
	for range 2 { // asking again for what one has is no second slot
		if !s.take("a", askedByPod, wake("a")) {
			t.Error("a free slot is not given")
		}
	}
	if s.take("b", askedByPod, wake("b")) || s.take("c", askedByPod, wake("c")) || s.take("d", askedByPod, wake("d")) {
		t.Error("there are more slots than there should be")
	}
	s.give("c") // gives up waiting
	s.give("a")
	if got := <-woken; got != "b" || !s.take("b", askedByPod, nil) {
		t.Errorf("%s is woken instead of b", got)
	}
	if left := s.stale(time.Now().Add(time.Hour), func(types.UID) bool { return false }); len(left) != 1 || left[0] != "b" {
		t.Errorf("stale holders are %v", left)
	}
	s.give("b")
	if got := <-woken; got != "d" {
		t.Errorf("%s is woken instead of d", got)
	}
	s.give("d")
	s.give("d") // once is enough
	if !s.take("e", askedByPod, nil) || s.take("f", askedByPod, wake("f")) {
		t.Error("a slot was given back twice")
	}
}

func TestConfigIsChecked(t *testing.T) {
	for want, config := range map[string]Config{
		"no API server":          {},
		"not a loopback address": {REST: &rest.Config{}, Address: "192.0.2.1"},
		"must not be negative":   {REST: &rest.Config{}, MaxPods: -1},
	} {
		if _, err := New(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v and not %q", err, want)
		}
	}
}
