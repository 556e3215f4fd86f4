package cluster

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Expired reports whether a list or a watch cannot continue where it was: the server no longer has that version.
func Expired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// Unserved reports whether the server does not know the kind: its definition is not installed, or was removed.
func Unserved(err error) bool { return apierrors.IsNotFound(err) }

// maxMessage is the maximum length of a message, that of a Kubernetes Event.
const maxMessage = 1024

// Cut shortens a message to 1024 bytes at a rune's border.
func Cut(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage-3], "") + "..."
}
