package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// Object is an object of Kubernetes with a name.
type Object interface {
	runtime.Object
	metav1.Object
}

// storedAtOnce is how many objects one transaction writes. etcd accepts 128, and 1.5 MiB in all.
const storedAtOnce = 100

// Store writes objects into etcd, in the form in which the API server keeps them: thousands take a second, where a request for each takes
// a minute. It is for tests that ask the API server about many. Nothing defaults, validates or admits the objects, so they should be
// copies of one that the API server has returned, with names and UIDs of their own. The resource is "jobs" or
// "jobstream.dev/scheduledjobs".
func (cp *ControlPlane) Store(ctx context.Context, resource string, objects []Object) error {
	for some := range slices.Chunk(objects, storedAtOnce) {
		puts := make([]map[string]keyValue, len(some))
		for i, o := range some {
			value, err := stored(o)
			if err != nil {
				return fmt.Errorf("encode %s/%s: %w", o.GetNamespace(), o.GetName(), err)
			}
			puts[i] = map[string]keyValue{"requestPut": {Key: []byte(Below(resource, o.GetNamespace()) + o.GetName()), Value: value}}
		}
		if err := cp.askEtcd(ctx, "txn", map[string]any{"success": puts}); err != nil {
			return err
		}
	}
	return nil
}

// Forget removes all objects of the resource in the namespace from etcd. Finalizers do not delay it.
func (cp *ControlPlane) Forget(ctx context.Context, resource, namespace string) error {
	from := Below(resource, namespace)
	return cp.askEtcd(ctx, "deleterange", keyValue{Key: []byte(from), End: []byte(from[:len(from)-1] + "0")}) // 0 is next to /
}

// Below is how etcd's keys of a namespace's objects begin. The resource is as in Store.
func Below(resource, namespace string) string { return "/registry/" + resource + "/" + namespace + "/" }

// keyValue is what etcd's requests name: []byte is base64 in JSON, as etcd expects it.
type keyValue struct {
	Key   []byte `json:"key"`
	End   []byte `json:"rangeEnd,omitempty"`
	Value []byte `json:"value,omitempty"`
}

// stored encodes an object as the API server does: Protocol Buffers for the kinds that client-go knows, JSON for custom resources.
func stored(o Object) ([]byte, error) {
	o.SetResourceVersion("") // the API server takes it from etcd's revision
	kinds, _, err := scheme.Scheme.ObjectKinds(o)
	switch kind := o.GetObjectKind().GroupVersionKind(); {
	case runtime.IsNotRegisteredError(err) && kind.Empty():
		return nil, errors.New("it names no kind: set apiVersion and kind, which clients remove")
	case runtime.IsNotRegisteredError(err):
		return json.Marshal(o)
	case err != nil:
		return nil, err
	}
	var value bytes.Buffer
	encoder := scheme.Codecs.EncoderForVersion(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), kinds[0].GroupVersion())
	err = encoder.Encode(o, &value)
	return value.Bytes(), err
}

// askEtcd calls a method of etcd's key-value store through its JSON gateway, so that no client of etcd has to be linked.
func (cp *ControlPlane) askEtcd(ctx context.Context, method string, request any) (err error) {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	url := cp.EtcdURL() + "/v3/kv/" + method
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
		return fmt.Errorf("%s: %s: %s", url, answer.Status, text)
	}
	return nil
}
