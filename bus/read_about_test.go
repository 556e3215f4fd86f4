package bus

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/bus/cloudevent"
	"github.com/jobstream/jobstream/events"
)

// minutes returns the minutes that the events are about.
func minutes(t *testing.T, all []StoredEvent, err error) []int {
	t.Helper()
	var of []int
	for _, e := range all {
		if e.Err != nil || e.Stored.IsZero() {
			t.Errorf("%+v", e)
		}
		of = append(of, e.CloudEvent.Time().Minute())
	}
	if err != nil {
		t.Error(err)
	}
	return of
}

// TestReadAboutOneObject: events of one kind about one object, of all its words, in the order in which they were stored.
func TestReadAboutOneObject(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b, v := connect(t, s), reader(t, s.URL())
	about := func(name string, since time.Time) []int {
		t.Helper()
		all, _, err := v.About(t.Context(), "shop", "schedule.tick", name, since)
		return minutes(t, all, err)
	}
	began := time.Now()
	if _, from, err := v.About(t.Context(), "shop", "schedule.tick", "nightly", time.Time{}); err != nil || from.IsZero() || from.After(began) {
		t.Errorf("an empty stream keeps everything since %v: %v", from, err)
	}
	announce(t, b, tick("shop", "nightly", 3), tick("lab", "nightly", 9), tick("shop", "nightly.x", 8), tick("shop", "nightly", 1, verdict(events.Missed)))
	all, from, err := v.About(t.Context(), "shop", "schedule.tick", "nightly", time.Time{})
	if got := minutes(t, all, err); !slices.Equal(got, []int{3, 1}) || from.After(all[0].Stored) {
		t.Errorf("%v, from %v on", got, from)
	}
	if got := about("nightly.x", time.Time{}); !slices.Equal(got, []int{8}) {
		t.Errorf("%v", got)
	}
	if got := about("nightly", all[1].Stored); !slices.Equal(got, []int{1}) {
		t.Errorf("since the second: %v", got)
	}
	stream, err := subscriber(t, s).Stream(t.Context(), eventsStream)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context(), jetstream.WithPurgeKeep(1)); err != nil {
		t.Fatal(err)
	}
	left, from, err := v.About(t.Context(), "shop", "schedule.tick", "nightly", time.Time{})
	if got := minutes(t, left, err); !slices.Equal(got, []int{1}) || !from.Equal(all[1].Stored) {
		t.Errorf("after a purge: %v, from %v on", got, from)
	}
	if err := stream.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, from, err := v.About(t.Context(), "shop", "schedule.tick", "nightly", time.Time{}); err != nil || len(left) > 0 || from.Before(all[1].Stored) {
		t.Errorf("after a purge of all: %v, from %v on, %v", left, from, err)
	}
	for _, nothing := range [][]int{about("nightly", time.Now().Add(time.Hour)), about("night", time.Time{}), about("*", time.Time{}), about(">", time.Time{})} {
		if len(nothing) > 0 {
			t.Errorf("%v", nothing)
		}
	}
}

// TestReadTheLast: the newest event about each object; objects without one are left out.
func TestReadTheLast(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b, v := connect(t, s), reader(t, s.URL())
	announce(t, b, tick("shop", "a", 1), tick("shop", "a", 2, verdict(events.Missed)), tick("shop", "b", 3))
	all, err := v.Last(t.Context(), "shop", "schedule.tick", []string{"a", "gone", "b"})
	if got := minutes(t, all, err); !slices.Equal(got, []int{2, 3}) {
		t.Errorf("%v", got)
	}
	if all, err := v.Last(t.Context(), "shop", "schedule.tick", nil); err != nil || len(all) > 0 {
		t.Errorf("%v, %v", all, err)
	}
}

// TestReadAboutOneOfMany: events about one object among ten times as many about others, faster than one after another.
func TestReadAboutOneOfMany(t *testing.T) {
	t.Parallel()
	const n, others = 2000, 10
	s := serve(t)
	b, v := connect(t, s), reader(t, s.URL())
	js := subscriber(t, s)
	var names []string
	for i := range n * (others + 1) {
		name := fmt.Sprint("other-", i%97)
		if i%(others+1) == 0 {
			name = "nightly"
		}
		e := tick("shop", name, 0)
		e.Nominal = e.Nominal.Add(time.Duration(i) * time.Second)
		encoded, err := events.CloudEvent("test", e)
		if err != nil {
			t.Fatal(err)
		}
		header, data, err := cloudevent.Encode(encoded, cloudevent.Structured)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := js.PublishMsgAsync(&nats.Msg{Subject: events.PublicSubject("test", e), Header: header, Data: data}, jetstream.WithStallWait(soon)); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(soon):
		t.Fatal("not all are stored")
	}
	if err := b.Ready(); err != nil {
		t.Error(err)
	}
	began := time.Now()
	all, _, err := v.About(t.Context(), "shop", "schedule.tick", "nightly", time.Time{})
	if err != nil || len(all) != n {
		t.Fatalf("%d events, %v", len(all), err)
	}
	for i, e := range all {
		if want := tick("shop", "nightly", 0).Nominal.Add(time.Duration(i*(others+1)) * time.Second); !e.CloudEvent.Time().Equal(want) {
			t.Fatalf("event %d is of %v, want %v", i, e.CloudEvent.Time(), want)
		}
	}
	t.Logf("%d events of %d: %v", n, len(names), time.Since(began).Round(time.Millisecond))
	began = time.Now()
	if all, err = v.Last(t.Context(), "shop", "schedule.tick", names[:n]); err != nil || len(all) != n {
		t.Fatalf("%d events, %v", len(all), err)
	}
	t.Logf("the last event of %d names: %v", n, time.Since(began).Round(time.Millisecond))
}

// TestReadAboutWithoutPermission: the error names the subject that the server refuses.
func TestReadAboutWithoutPermission(t *testing.T) {
	t.Parallel()
	as := guarded(t)
	b := connect(t, nil, func(c *Config) { c.URL = as("operator") })
	announce(t, b, tick("shop", "nightly", 1))
	v, err := Inspect(t.Context(), Config{URL: as("trigger"), Cluster: "test", ConnectTimeout: soon, Role: Trigger})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	began := time.Now()
	_, _, err = v.About(t.Context(), "shop", "schedule.tick", "nightly", time.Time{})
	if err == nil || !strings.Contains(err.Error(), "$JS.API.STREAM.MSG.GET.jobstream_test_events") || time.Since(began) > soon {
		t.Errorf("after %v: %v", time.Since(began), err)
	} else {
		t.Log(err)
	}
}
