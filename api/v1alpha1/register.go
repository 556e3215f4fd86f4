package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kinds of this package.
var GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

const (
	// ScheduledJobKind is the kind.
	ScheduledJobKind = "ScheduledJob"
	// ScheduledJobResource is its plural in URLs.
	ScheduledJobResource = "scheduledjobs"
)

// AddToScheme makes the kinds known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &ScheduledJob{}, &ScheduledJobList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
