package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/deploy"
	"github.com/jobstream/jobstream/internal/finding"
)

// ServesScheduledJobs reports whether the API server serves the kind.
func ServesScheduledJobs(client kubernetes.Interface) (bool, error) {
	list, err := client.Discovery().ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == v1alpha1.ScheduledJobResource }), nil
}

// Definition compares the served fields of ScheduledJobs with those of this program's definition. Every user may read discovery
// and the OpenAPI document, but not the definition itself.
func (i Inspection) Definition(ctx context.Context) finding.Finding {
	const check, install = "scheduledjobs", "kubectl apply -k deploy/crd"
	version := v1alpha1.GroupVersion.String()
	served, err := ServesScheduledJobs(i.Client) //nolint:contextcheck // discovery takes none
	switch {
	case err != nil:
		return finding.Worry(check, finding.Fail, "look at the API server's log", "cannot be checked: %v", err)
	case !served:
		return finding.Worry(check, finding.Warn, install+", if you want them", "this cluster has none: Jobs run all the same")
	}
	want, err := deployedFields()
	if err != nil {
		return finding.Worry(check, finding.Fail, "this is a bug: please report it", "the program's own definition cannot be read: %v", err)
	}
	have, err := i.servedFields(ctx)
	if err != nil {
		return finding.Worry(check, finding.Warn, "compare it with deploy/crd/scheduledjobs.yaml yourself", "%s is served; its fields cannot be seen: %v", version, err)
	}
	if missing := slices.DeleteFunc(want, func(f string) bool { return slices.Contains(have, f) }); len(missing) > 0 {
		return finding.Worry(check, finding.Fail, install, "%s is served by a definition that is older than this program: it does not know %s", version, strings.Join(missing, ", "))
	}
	return finding.Good(check, "%s is served, with every field that this program knows", version)
}

// properties are the compared parts of an object's schema.
type properties struct {
	Properties map[string]struct {
		Properties map[string]any `json:"properties"`
	} `json:"properties"`
}

func (p properties) fields() (all []string) {
	for _, part := range []string{"spec", "status"} {
		for name := range p.Properties[part].Properties {
			all = append(all, part+"."+name)
		}
	}
	slices.Sort(all)
	return all
}

// deployedFields returns the fields of this program's definition.
func deployedFields() ([]string, error) {
	var d struct {
		Spec struct {
			Versions []struct {
				Name   string `json:"name"`
				Schema struct {
					Schema properties `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := sigsyaml.Unmarshal(deploy.ScheduledJobs, &d); err != nil {
		return nil, err
	}
	for _, v := range d.Spec.Versions {
		if v.Name == v1alpha1.GroupVersion.Version {
			return v.Schema.Schema.fields(), nil
		}
	}
	return nil, fmt.Errorf("it has no version %s", v1alpha1.GroupVersion.Version)
}

// servedFields returns the fields that the API server accepts.
func (i Inspection) servedFields(ctx context.Context) ([]string, error) {
	raw, err := i.Client.Discovery().RESTClient().Get().AbsPath("/openapi/v3/apis/"+v1alpha1.GroupVersion.String()).
		SetHeader("Accept", "application/json").Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	var document struct {
		Components struct {
			Schemas map[string]properties `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		return nil, err
	}
	for name, s := range document.Components.Schemas {
		if strings.HasSuffix(name, "."+v1alpha1.ScheduledJobKind) {
			return s.fields(), nil
		}
	}
	return nil, errors.New("the OpenAPI document does not describe them")
}
