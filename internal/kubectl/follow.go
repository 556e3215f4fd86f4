package kubectl

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// again is the delay after a failed list or watch.
const again = time.Second

// source lists and watches objects. T is a pointer to an object.
type source[T runtime.Object] struct {
	list  func(context.Context, metav1.ListOptions) (items []T, version string, err error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// eyes receives what a source shows. Each callback returns true to end the watch.
type eyes[T runtime.Object] struct {
	// listed receives all objects: at the beginning, and whenever a change may have been missed.
	listed func([]T) (enough bool)
	// changed receives one change.
	changed func(watch.EventType, T) (enough bool)
	// lost receives the reason when the connection is lost, once until it is back; follow retries. It may be nil.
	lost func(error)
}

// follow lists and watches until a callback returns true, and then returns nil. Otherwise it returns when ctx ends or the API
// server's error is permanent.
func (s source[T]) follow(ctx context.Context, o metav1.ListOptions, e eyes[T]) error {
	told := false
	for {
		enough, err := s.once(ctx, o, e)
		switch {
		case enough:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case hopeless(err):
			return err
		case err == nil:
			told = false
			continue // the API server ends a watch every few minutes
		case e.lost != nil && !told && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err):
			told = true
			e.lost(err)
		}
		rest := time.NewTimer(again)
		select {
		case <-rest.C:
		case <-ctx.Done():
			rest.Stop()
			return context.Cause(ctx)
		}
	}
}

// once lists, and watches until the watch ends.
func (s source[T]) once(ctx context.Context, o metav1.ListOptions, e eyes[T]) (enough bool, err error) {
	items, version, err := s.list(ctx, o)
	if err != nil {
		return false, err
	}
	if e.listed(items) {
		return true, nil
	}
	o.ResourceVersion = version
	w, err := s.watch(ctx, o)
	if err != nil {
		return false, err
	}
	defer w.Stop()
	for change := range w.ResultChan() {
		if change.Type == watch.Error {
			return false, apierrors.FromObject(change.Object)
		}
		object, is := change.Object.(T)
		if !is {
			return false, fmt.Errorf("the API server shows a %T", change.Object)
		}
		if e.changed(change.Type, object) {
			return true, nil
		}
	}
	return false, nil
}

// hopeless reports whether a retry would get the same error.
func hopeless(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) ||
		apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) || apierrors.IsMethodNotSupported(err)
}

// pointers returns pointers to a list's items.
func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}
