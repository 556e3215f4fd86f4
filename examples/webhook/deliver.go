package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/bus/cloudevent"
)

const (
	// firstWait doubles with each try that fails, up to longestWait.
	firstWait   = time.Second
	longestWait = 10 * time.Minute
	// longestAsked limits the wait that a receiver may request.
	longestAsked = 24 * time.Hour
)

// forwarder posts events to a URL.
type forwarder struct {
	url           *url.URL
	authorization string
	tries         int
	client        *http.Client
}

// outcome is the result of a request.
type outcome struct {
	err   error         // nil if the receiver has it
	final bool          // a retry is useless
	wait  time.Duration // requested by the receiver; 0 for none
}

// forward delivers one event, or schedules its redelivery. It acknowledges the event only after the receiver's success, so a
// crash before that repeats the delivery.
func (f *forwarder) forward(ctx context.Context, m jetstream.Msg) {
	meta, err := m.Metadata()
	if err != nil {
		return // not a stream message
	}
	id, body, err := read(m)
	o := outcome{err: err, final: true}
	if err == nil {
		o = f.post(ctx, body)
	}
	log := slog.With("event", id, "sequence", meta.Sequence.Stream, "try", meta.NumDelivered)
	switch {
	case o.err == nil:
		err = m.Ack()
		log.Info("delivered")
	case ctx.Err() != nil:
		err = m.Nak() // stopping: another instance may take it at once
	case o.final, meta.NumDelivered >= uint64(f.tries):
		// The event stays in the stream until it expires: "nats stream get" shows it by its sequence.
		err = m.TermWithReason("the receiver does not take it")
		log.Error("set aside", "err", o.err)
	default:
		wait := cmp.Or(o.wait, backoff(meta.NumDelivered))
		err = m.NakWithDelay(wait)
		log.Warn("will be tried again", "wait", wait, "err", o.err)
	}
	if err != nil {
		log.Warn("the bus was not told: the event comes again", "err", err)
	}
}

// read returns the event in structured mode, even if it came in binary mode, and its identity for detecting repetitions.
func read(m jetstream.Msg) (id string, body []byte, err error) {
	e, err := cloudevent.Decode(m.Headers(), m.Data())
	if err != nil {
		return "unreadable", nil, err
	}
	_, body, err = cloudevent.Encode(e, cloudevent.Structured)
	return e.Source() + " " + e.ID(), body, err
}

// post sends an event; the content type marks a structured CloudEvent.
func (f *forwarder) post(ctx context.Context, body []byte) outcome {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url.String(), bytes.NewReader(body))
	if err != nil {
		return outcome{err: err, final: true}
	}
	r.Header.Set("Content-Type", "application/cloudevents+json")
	if f.authorization != "" {
		r.Header.Set("Authorization", f.authorization)
	}
	answer, err := f.client.Do(r)
	if err != nil {
		return outcome{err: err} // not reached, or too slow
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // so that the connection can be reused
	return judge(answer, time.Now())
}

// judge interprets a response.
func judge(answer *http.Response, now time.Time) outcome {
	code := answer.StatusCode
	if code >= 200 && code < 300 {
		return outcome{}
	}
	o := outcome{err: fmt.Errorf("the receiver answers %s", answer.Status)}
	switch {
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500:
		o.wait = retryAfter(answer.Header.Get("Retry-After"), now)
	default:
		o.final = true // a retry would get the same response
	}
	return o
}

// retryAfter parses the header, seconds or a date; 0 if it has neither.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, longestAsked)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, min(at.Sub(now), longestAsked))
	}
	return 0
}

// backoff returns the wait after that many tries.
func backoff(tries uint64) time.Duration {
	return min(firstWait<<min(tries-1, 20), longestWait)
}
