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

// again is how long a list or a watch that has failed rests.
const again = time.Second

// source is what can be listed and watched. T is a pointer to an object.
type source[T runtime.Object] struct {
	list  func(context.Context, metav1.ListOptions) (items []T, version string, err error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// eyes are told what a source shows. Each returns true for "enough".
type eyes[T runtime.Object] struct {
	// listed is told everything that there is, at the beginning and whenever a change may have been missed.
	listed func([]T) (enough bool)
	// changed is told one change.
	changed func(watch.EventType, T) (enough bool)
	// lost is told why nothing is seen for now, once until something is; it is tried again. It may be nil.
	lost func(error)
}

// follow lists and watches until the eyes have seen enough, which returns nil; until ctx ends; or until the API server says
// that it will never answer.
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
			continue // a watch ends every few minutes
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

// hopeless says that the answer will be the same the next time.
func hopeless(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) ||
		apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) || apierrors.IsMethodNotSupported(err)
}

// pointers are a list's items as a source has them.
func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}
