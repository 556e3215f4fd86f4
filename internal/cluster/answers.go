package cluster

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Expired reports whether a list or a watch cannot go on from where it was: the server no longer knows that version.
func Expired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// Unserved reports whether the server does not know the kind: its definition is not installed, or was removed.
func Unserved(err error) bool { return apierrors.IsNotFound(err) }

// maxMessage is the length of a message of ours: what an Event of Kubernetes may hold.
const maxMessage = 1024

// Cut shortens a message to 1024 bytes at a rune's border.
func Cut(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage-3], "") + "..."
}
