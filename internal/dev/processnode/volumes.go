package processnode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	authv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
)

// volumes makes the volumes of one Pod as folders below dir.
type volumes struct {
	resolver
	dir   string
	token func(ctx context.Context, namespace, account string, spec authv1.TokenRequestSpec) (string, error)
}

// defaultMode of the files in a volume, as the API server defaults it.
const defaultMode = 0o644

// volume makes the volume, once, and returns where it is and whether its kind is read-only by nature.
func (v volumes) volume(ctx context.Context, name string, c *v1.Container) (path string, readOnly bool, err error) {
	var vol *v1.Volume
	for i := range v.pod.Spec.Volumes {
		if v.pod.Spec.Volumes[i].Name == name {
			vol = &v.pod.Spec.Volumes[i]
		}
	}
	if vol == nil {
		return "", false, fmt.Errorf("volume %s is not declared in the Pod", name)
	}
	if vol.HostPath != nil {
		_, err := os.Stat(vol.HostPath.Path)
		return vol.HostPath.Path, false, err
	}
	path = filepath.Join(v.dir, name)
	readOnly = vol.EmptyDir == nil
	if _, err := os.Stat(path); err == nil {
		return path, readOnly, nil
	}
	// Filled aside and renamed, so that a second container never meets half a volume of a first attempt.
	fresh := path + ".new"
	if err := errors.Join(os.RemoveAll(fresh), os.MkdirAll(fresh, 0o700)); err != nil {
		return "", false, err
	}
	if err := v.fill(ctx, vol, fresh, c); err != nil {
		return "", false, err
	}
	// As in the kubelet, the container's user, whichever it is, may use its volumes.
	mode := fs.FileMode(0o777)
	if readOnly {
		mode = 0o755
	}
	return path, readOnly, errors.Join(os.Chmod(fresh, mode), os.Rename(fresh, path))
}

func (v volumes) fill(ctx context.Context, vol *v1.Volume, dir string, c *v1.Container) error {
	s := vol.VolumeSource
	switch {
	case s.EmptyDir != nil:
		return nil
	case s.ConfigMap != nil:
		return v.fillConfigMap(ctx, dir, s.ConfigMap.Name, s.ConfigMap.Items, s.ConfigMap.Optional, s.ConfigMap.DefaultMode)
	case s.Secret != nil:
		return v.fillSecret(ctx, dir, s.Secret.SecretName, s.Secret.Items, s.Secret.Optional, s.Secret.DefaultMode)
	case s.DownwardAPI != nil:
		return v.fillDownward(dir, s.DownwardAPI.Items, s.DownwardAPI.DefaultMode, c)
	case s.Projected != nil:
		for _, p := range s.Projected.Sources {
			if err := v.fillProjected(ctx, dir, p, s.Projected.DefaultMode, c); err != nil {
				return err
			}
		}
		return nil
	}
	return broken{fmt.Errorf("volume %s is of a kind that the development node does not have: use emptyDir, configMap, "+
		"secret, downwardAPI, projected or hostPath", vol.Name)}
}

func (v volumes) fillProjected(ctx context.Context, dir string, p v1.VolumeProjection, mode *int32, c *v1.Container) error {
	switch {
	case p.ConfigMap != nil:
		return v.fillConfigMap(ctx, dir, p.ConfigMap.Name, p.ConfigMap.Items, p.ConfigMap.Optional, mode)
	case p.Secret != nil:
		return v.fillSecret(ctx, dir, p.Secret.Name, p.Secret.Items, p.Secret.Optional, mode)
	case p.DownwardAPI != nil:
		return v.fillDownward(dir, p.DownwardAPI.Items, mode, c)
	case p.ServiceAccountToken != nil:
		want := authv1.TokenRequestSpec{ExpirationSeconds: p.ServiceAccountToken.ExpirationSeconds}
		if a := p.ServiceAccountToken.Audience; a != "" {
			want.Audiences = []string{a}
		}
		want.BoundObjectRef = &authv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: v.pod.Name, UID: v.pod.UID}
		account := v.pod.Spec.ServiceAccountName
		if account == "" {
			account = "default"
		}
		token, err := v.token(ctx, v.pod.Namespace, account, want)
		if err != nil {
			return err
		}
		return put(dir, p.ServiceAccountToken.Path, []byte(token), mode)
	}
	return broken{errors.New("a projected volume has a source that the development node does not have: use configMap, " +
		"secret, downwardAPI or serviceAccountToken")}
}

func (v volumes) fillConfigMap(ctx context.Context, dir, name string, items []v1.KeyToPath, opt *bool, mode *int32) error {
	cm, err := v.objects.configMap(ctx, v.pod.Namespace, name)
	if err != nil {
		return unless(optional(opt), err)
	}
	data := map[string][]byte{}
	for k, s := range cm.Data {
		data[k] = []byte(s)
	}
	for k, b := range cm.BinaryData {
		data[k] = b
	}
	return unless(optional(opt), putAll(dir, data, items, mode, missing{"", "ConfigMap", v.pod.Namespace, name}))
}

func (v volumes) fillSecret(ctx context.Context, dir, name string, items []v1.KeyToPath, opt *bool, mode *int32) error {
	s, err := v.objects.secret(ctx, v.pod.Namespace, name)
	if err != nil {
		return unless(optional(opt), err)
	}
	return unless(optional(opt), putAll(dir, s.Data, items, mode, missing{"", "Secret", v.pod.Namespace, name}))
}

func (v volumes) fillDownward(dir string, items []v1.DownwardAPIVolumeFile, mode *int32, c *v1.Container) error {
	for _, item := range items {
		value, err := "", error(nil)
		if item.FieldRef != nil {
			value, err = v.field(item.FieldRef.FieldPath)
		} else if item.ResourceFieldRef != nil {
			value, err = v.resource(c, item.ResourceFieldRef)
		}
		if err != nil {
			return err
		}
		m := mode
		if item.Mode != nil {
			m = item.Mode
		}
		if err := put(dir, item.Path, []byte(value), m); err != nil {
			return err
		}
	}
	return nil
}

// putAll writes the named keys, or all of them where none is named.
func putAll(dir string, data map[string][]byte, items []v1.KeyToPath, mode *int32, miss missing) error {
	if len(items) == 0 {
		for k, b := range data {
			if err := put(dir, k, b, mode); err != nil {
				return err
			}
		}
		return nil
	}
	for _, item := range items {
		b, ok := data[item.Key]
		if !ok {
			miss.key = item.Key
			return miss
		}
		m := mode
		if item.Mode != nil {
			m = item.Mode
		}
		if err := put(dir, item.Path, b, m); err != nil {
			return err
		}
	}
	return nil
}

// put writes one file of a volume and never one outside it.
func put(dir, path string, data []byte, mode *int32) error {
	if !filepath.IsLocal(path) {
		return broken{fmt.Errorf("path %q leads out of its volume", path)}
	}
	m := fs.FileMode(defaultMode)
	if mode != nil {
		m = fs.FileMode(*mode) & fs.ModePerm
	}
	full := filepath.Join(dir, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(full, data, 0o600); err != nil {
		return err
	}
	return os.Chmod(full, m) // after the fact, for the umask is the node's
}

// subPath is a place inside a volume. It is made as a folder where it does not exist.
func subPath(volume, sub string) (string, error) {
	if sub == "" {
		return volume, nil
	}
	if !filepath.IsLocal(sub) {
		return "", broken{fmt.Errorf("subPath %q leads out of its volume", sub)}
	}
	// A link that the container has made must not lead out either.
	root, err := os.OpenRoot(volume)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if _, err := root.Stat(sub); err == nil {
		return filepath.Join(volume, sub), nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := root.MkdirAll(strings.Trim(sub, "/"), 0o777); err != nil {
		return "", err
	}
	return filepath.Join(volume, sub), nil
}
