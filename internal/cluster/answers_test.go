package cluster

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestWhichAnswersEndAWatch: an API server reports a version that it no longer has in either of two ways; that a kind is not there is
// another matter, and any other error says nothing about either.
func TestWhichAnswersEndAWatch(t *testing.T) {
	for _, c := range []struct {
		err               error
		expired, unserved bool
	}{
		{err: apierrors.NewResourceExpired("the version is too old"), expired: true},
		{err: &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonGone}}, expired: true},
		{err: apierrors.NewNotFound(schema.GroupResource{Resource: "scheduledjobs"}, ""), unserved: true},
		{err: apierrors.NewTooManyRequests("wait", 1)},
		{err: errors.New("connection refused")},
		{},
	} {
		if Expired(c.err) != c.expired || Unserved(c.err) != c.unserved {
			t.Errorf("%v: expired %v, unserved %v", c.err, Expired(c.err), Unserved(c.err))
		}
	}
}

// TestMessagesAreCut: to what a Kubernetes Event holds, and at the border of a character.
func TestMessagesAreCut(t *testing.T) {
	if got := Cut(strings.Repeat("a", 1024)); got != strings.Repeat("a", 1024) {
		t.Errorf("the longest has %d bytes", len(got))
	}
	if got := Cut(strings.Repeat("a", 1025)); got != strings.Repeat("a", 1021)+"..." {
		t.Errorf("one more has %d bytes: %s", len(got), got[1000:])
	}
	if got := Cut(strings.Repeat("ü", 600)); got != strings.Repeat("ü", 510)+"..." {
		t.Errorf("%d bytes: %q", len(got), got[1000:])
	}
}
