package embedded

import (
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestErrors(t *testing.T) {
	t.Parallel()
	if _, err := Start(Config{}); err == nil || !strings.Contains(err.Error(), "StoreDir") {
		t.Error(err)
	}
	s, err := Start(Config{StoreDir: t.TempDir(), Port: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	taken, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := Start(Config{StoreDir: t.TempDir(), Port: taken}); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Error(err)
	}
	if took := time.Since(began); took >= startTimeout {
		t.Errorf("a taken port was found out after %v", took)
	}
}
