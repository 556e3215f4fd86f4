package app

import (
	"bytes"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"k8s.io/klog/v2"
	"time"
)

func TestFloodsAreThinnedOut(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	f := &floods{now: func() time.Time { return now }, seen: map[string]*flood{}}
	log := slog.New(limiter{slog.NewTextHandler(&out, nil), f})
	complain := func(n int) {
		for range n {
			log.With("job", "a").Warn("turn put back")
		}
	}
	complain(floodBurst + 7)
	log.Warn("another")
	for range 2 * floodBurst {
		log.Info("news")
	}
	if got := strings.Count(out.String(), "turn put back"); got != floodBurst {
		t.Errorf("%d complaints were written, want %d", got, floodBurst)
	}
	if got := strings.Count(out.String(), "news"); got != 2*floodBurst {
		t.Errorf("%d pieces of news were written, want all %d", got, 2*floodBurst)
	}
	if !strings.Contains(out.String(), "another") {
		t.Error("one complaint silenced another")
	}
	out.Reset()
	now = now.Add(floodWindow)
	complain(1)
	if !strings.Contains(out.String(), "swallowed=7") {
		t.Errorf("the number of suppressed lines is missing: %s", out.String())
	}
}

func TestFloodsAreForgotten(t *testing.T) {
	f := &floods{now: time.Now, seen: map[string]*flood{}}
	for i := range 3 * floodMessages {
		f.count(strconv.Itoa(i))
	}
	if len(f.seen) > floodMessages {
		t.Errorf("%d messages are remembered", len(f.seen))
	}
}

func TestLoggerByOptions(t *testing.T) {
	var out bytes.Buffer
	log, err := LogOptions{Level: "debug", Format: "json"}.Logger(&out)
	if err != nil {
		t.Fatal(err)
	}
	log.Debug("small")
	Quiet(log).With("x", 1).Debug("smaller")
	if !strings.Contains(out.String(), `"msg":"small"`) || strings.Contains(out.String(), "smaller") {
		t.Errorf("logged %s", out.String())
	}
	for _, o := range []LogOptions{{Level: "loud", Format: "text"}, {Level: "info", Format: "xml"}} {
		if _, err := o.Logger(&out); !errors.As(err, new(Usage)) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// What client-go logs through klog goes to the log of the program, with the attributes of its loggers.
func TestClientGoLogsToTheProgram(t *testing.T) {
	early := klog.Background().WithName("reflector").WithValues("type", "Job") // client-go derives loggers before flags are read
	t.Cleanup(func() { clientGo.Store(nil) })
	clientGo.Store(nil)
	early.Error(nil, "before the flags are read")
	var out bytes.Buffer
	if _, err := (LogOptions{Level: "info", Format: "text"}).Logger(&out); err != nil {
		t.Fatal(err)
	}
	early.Error(nil, "no watch", "retries", 3)
	klog.Background().V(4).Info("too verbose")
	line := out.String()
	for _, part := range []string{"level=ERROR", `msg="no watch"`, "component=client-go", "logger=reflector", "type=Job", "retries=3"} {
		if !strings.Contains(line, part) {
			t.Errorf("%s is missing in %s", part, line)
		}
	}
	if strings.Count(line, "\n") != 1 {
		t.Errorf("more than one line: %s", line)
	}
}
