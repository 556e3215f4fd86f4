package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// A Job is over when it has ended and, where Pods are watched, its Pod was seen: the two watches are in no order.
func TestObserver(t *testing.T) {
	start := time.Now()
	pod, ended := func(l *life) *time.Time { return &l.pod }, func(l *life) *time.Time { return &l.ended }
	o := &observer{lives: map[string]*life{}, pods: true, changed: make(chan struct{}, 1)}
	o.of("a").made = start
	o.note("a", start.Add(time.Second), ended)
	if o.over != 0 {
		t.Error("a is over before its Pod was seen")
	}
	o.note("a", start.Add(2*time.Second), pod)
	o.note("a", start.Add(3*time.Second), pod) // another Pod, or the same again
	o.note("a", start.Add(3*time.Second), ended)
	if err := o.wait(t.Context(), 1, func() error { return nil }); err != nil {
		t.Error(err)
	}
	l := load{pods: 1, jobs: o.seen()}
	if l.took() != time.Second || l.each(toPod)[0] != 2*time.Second || o.over != 1 {
		t.Errorf("%+v, %d over", l.jobs, o.over)
	}
}

func TestWaitEnds(t *testing.T) {
	o := &observer{lives: map[string]*life{}, changed: make(chan struct{}, 1)}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := o.wait(gone, 3, func() error { return nil }); err == nil || !strings.Contains(err.Error(), "0 of 3 Jobs had ended") {
		t.Errorf("after its time: %v", err)
	}
	broken := errors.New("a program has ended")
	if err := o.wait(t.Context(), 3, func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("a broken system: %v", err)
	}
}
