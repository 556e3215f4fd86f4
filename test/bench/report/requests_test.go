package report

import (
	"maps"
	"testing"
)

// page is a part of what an API server serves.
const page = `# HELP apiserver_request_total Counter of apiserver requests broken out for each verb, ...
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",component="apiserver",dry_run="",group="batch",resource="jobs",scope="resource",subresource="status",verb="PUT",version="v1"} 7
apiserver_request_total{code="409",component="apiserver",dry_run="",group="batch",resource="jobs",scope="resource",subresource="status",verb="PUT",version="v1"} 2
apiserver_request_total{code="201",component="apiserver",dry_run="",group="batch",resource="jobs",scope="resource",subresource="",verb="POST",version="v1"} 1
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="POST",version="v1"} 1.5e+03
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="binding",verb="POST",version="v1"} 1500
apiserver_request_total{code="0",component="apiserver",dry_run="",group="",resource="pods",scope="cluster",subresource="",verb="WATCH",version="v1"} 3
apiserver_requested_deprecated_apis{group="",resource="pods"} 1
`

func TestRequests(t *testing.T) {
	requests, refused, err := parse(page)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"PUT jobs/status": 9, "POST jobs": 1, "POST pods": 1500, "POST pods/binding": 1500, "WATCH pods": 3}
	if !maps.Equal(requests, want) {
		t.Errorf("requests are %v, want %v", requests, want)
	}
	if !maps.Equal(refused, map[string]float64{"PUT jobs/status": 2}) {
		t.Errorf("refused are %v", refused)
	}
}

func TestSum(t *testing.T) {
	for metric, want := range map[string]float64{series: 3013, "apiserver_requested_deprecated_apis": 1, "apiserver_request": 0} {
		if got, err := Sum(page, metric); err != nil || got != want {
			t.Errorf("%s adds up to %v, %v, want %v", metric, got, err, want)
		}
	}
	if got, err := Sum("go_goroutines 7\n", "go_goroutines"); err != nil || got != 7 {
		t.Errorf("a metric without labels adds up to %v, %v, want 7", got, err)
	}
}

func TestParseOfWhatIsNoMetric(t *testing.T) {
	for _, line := range []string{`apiserver_request_total{verb="PUT"} many`, `apiserver_request_total{verb="PUT"`} {
		if _, _, err := parse(line); err == nil {
			t.Errorf("%q is read", line)
		}
	}
}

func TestSubtractLeavesWhatHasChanged(t *testing.T) {
	now := map[string]float64{"GET jobs": 3, "POST pods": 5, "POST events": 2}
	Subtract(now, map[string]float64{"GET jobs": 3, "POST pods": 1})
	if want := map[string]float64{"POST pods": 4, "POST events": 2}; !maps.Equal(now, want) {
		t.Errorf("%v, want %v", now, want)
	}
}

func TestNumber(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 0.123: "0.12", 5: "5", 12.34: "12.3", 123.4: "123", 5000: "5000"} {
		if got := Number(n); got != want {
			t.Errorf("%v is written %s, want %s", n, got, want)
		}
	}
}
