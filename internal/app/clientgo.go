package app

import (
	"context"
	"log/slog"
	"sync/atomic"

	"k8s.io/klog/v2"
)

// clientGo is where client-go logs. It does so through klog, whose logger belongs to the process and may only be set before
// anything logs, while a program knows its log after it has read its flags. So klog gets a handler that looks here at each line;
// until a program has stored its log, nothing is written.
var clientGo atomic.Pointer[slog.Logger]

func init() { klog.SetSlogLogger(slog.New(toClientGo{})) }

// toClientGo is a slog.Handler in front of clientGo. derive adds the attributes and groups of a derived logger; nil adds none.
type toClientGo struct {
	derive func(slog.Handler) slog.Handler
}

func (t toClientGo) handler() slog.Handler {
	log := clientGo.Load()
	switch {
	case log == nil:
		return slog.DiscardHandler
	case t.derive == nil:
		return log.Handler()
	}
	return t.derive(log.Handler())
}

func (t toClientGo) then(add func(slog.Handler) slog.Handler) slog.Handler {
	if t.derive == nil {
		return toClientGo{add}
	}
	return toClientGo{func(h slog.Handler) slog.Handler { return add(t.derive(h)) }}
}

// Enabled implements slog.Handler.
func (t toClientGo) Enabled(ctx context.Context, level slog.Level) bool {
	return t.handler().Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (t toClientGo) Handle(ctx context.Context, r slog.Record) error {
	return t.handler().Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (t toClientGo) WithAttrs(a []slog.Attr) slog.Handler {
	return t.then(func(h slog.Handler) slog.Handler { return h.WithAttrs(a) })
}

// WithGroup implements slog.Handler.
func (t toClientGo) WithGroup(name string) slog.Handler {
	return t.then(func(h slog.Handler) slog.Handler { return h.WithGroup(name) })
}
