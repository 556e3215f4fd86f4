package controlplane_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/internal/dev/controlplane"
	"github.com/jobstream/jobstream/internal/dev/controlplane/controlplanetest"
)

// The API server fetches logs from a node on loopback, whatever certificate the node serves, and shows it a
// certificate that the node can check.
func TestLogsOfNodeOnLoopback(t *testing.T) {
	t.Parallel()
	cp := controlplanetest.Start(t, controlplane.Config{})
	client := clientOf(t, cp)
	port := serveLogs(t, cp.CAFile())

	node, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "here"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = port
	if _, err := client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "speaker"},
		Spec:       corev1.PodSpec{NodeName: "here", Containers: []corev1.Container{{Name: "main", Image: "true"}}},
	}
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err := client.CoreV1().Pods("default").GetLogs("speaker", &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const want = "kube-apiserver-kubelet-client asks for /containerLogs/default/speaker/main"
	if string(got) != want {
		t.Errorf("log is %q, want %q", got, want)
	}
}

// serveLogs plays the log endpoint of a node, for clients that the authority in caFile has signed.
func serveLogs(t *testing.T, caFile string) (port int32) {
	t.Helper()
	ca, err := os.ReadFile(caFile)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(ca)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s asks for %s", r.TLS.PeerCertificates[0].Subject.CommonName, r.URL.Path)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted}
	server.StartTLS() // with a self-signed certificate
	t.Cleanup(server.Close)
	return int32(server.Listener.Addr().(*net.TCPAddr).Port)
}
