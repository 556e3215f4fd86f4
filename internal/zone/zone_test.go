package zone_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jobstream/jobstream/internal/zone"
)

func TestLoad(t *testing.T) {
	berlin, err := zone.Load("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := zone.Load("Europe/Berlin"); again != berlin || err != nil {
		t.Errorf("read twice: %v", err)
	}
	if utc, err := zone.Load(""); utc != time.UTC || err != nil {
		t.Errorf("%v, %v", utc, err)
	}
	for _, name := range []string{"Atlantis/Poseidonis", "Local", "../etc/passwd"} {
		if _, err := zone.Load(name); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
