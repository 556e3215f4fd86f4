package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		name    string
		numbers map[int]float64
		want    spread
	}{
		{"none", nil, spread{}},
		{"one", map[int]float64{3: 7}, spread{1, 7, 7, 7}},
		{"an odd number of them", map[int]float64{1: 9, 2: 1, 3: 2}, spread{3, 2, 1, 9}},
		{"an even number", map[int]float64{1: 9, 2: 1, 3: 2, 4: 4}, spread{4, 3, 1, 9}},
	} {
		if got := spreadOf(c.numbers); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// A round counts only if both sides have a number: the pair has seen the same machine.
func TestRatiosAreOfPairs(t *testing.T) {
	got := spreadOf(ratios(map[int]float64{1: 30, 2: 10, 4: 1}, map[int]float64{1: 10, 2: 20, 3: 5}))
	if want := (spread{2, 1.75, 0.5, 3}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// What was measured again replaces what was measured before, even if there is less of it.
func TestLaterFilesReplaceWorkloads(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	monday := write("monday.json", `{"measurements": [{"workload": "one", "limit": "unlimited", "round": 1}, {"workload": "one", "limit": "unlimited", "round": 2},
		{"workload": "one", "limit": "default", "round": 1}, {"workload": "storm", "limit": "unlimited", "round": 1}]}`)
	tuesday := write("tuesday.json", `{"measurements": [{"workload": "one", "limit": "unlimited", "round": 1, "seconds": 7}]}`)
	r, err := readResults([]string{monday, tuesday})
	if err != nil || len(r.Measurements) != 3 {
		t.Fatalf("%+v, %v, want one of each limit, and storm", r, err)
	}
	if last := r.Measurements[2]; last.Workload != "one" || last.Limit != "unlimited" || last.Seconds != 7 {
		t.Errorf("%+v is not of tuesday", last)
	}
	if _, err := readResults([]string{write("notes.txt", "none")}); err == nil || !strings.Contains(err.Error(), "notes.txt is not a file with measurements") {
		t.Errorf("a file of another kind: %v", err)
	}
}

func TestChoose(t *testing.T) {
	usual := func(w workload) bool { return !w.large }
	for list, want := range map[string]string{
		"":            "one big500 big2000 big5000 indexed5000 indexed10000 storm due1000 due5000 failing mixed",
		"storm,one":   "one storm",
		"large mixed": "mixed large",
	} {
		got, err := choose(workloads, list, usual)
		if err != nil || strings.Join(names(got), " ") != want {
			t.Errorf("%q chooses %v, %v, want %s", list, names(got), err, want)
		}
	}
	if _, err := choose(workloads, "storm,strom", usual); err == nil || !strings.Contains(err.Error(), `"strom" is unknown: choose from one, big500`) {
		t.Errorf("a workload that does not exist: %v", err)
	}
}

// measured are two pairs of big500 under the first limit; jobstream was late once.
func measured() *results {
	m := func(round int, side string, podsPerSecond, cpu float64, late string) measurement {
		return measurement{Round: round, Limit: limits[0].name, Workload: "big500", Side: side, Pods: 500, Late: late, StatusWrites: 3,
			Values: map[string]float64{"Pods/s": podsPerSecond}, cost: cost{CPU: map[string]float64{controller: cpu, apiServer: 1}, Requests: map[string]float64{"POST pods": 500}}}
	}
	return &results{Measurements: []measurement{m(1, builtIn, 100, 1, ""), m(1, jobstream, 150, 0.5, ""), m(2, jobstream, 0, 0, "late"), m(2, builtIn, 120, 2, "")}}
}

func TestTables(t *testing.T) {
	var out bytes.Buffer
	measured().print(&out, workloads, limits)
	for _, want := range []string{
		"| big500   | Pods/s  | more      | 110 [100, 120] | 150 1 without a result | 1.50x | 1     |",
		"| big500   | built-in  | 3 ", "| big500   | jobstream | 1 ", "| big500   | ratio     | 0.50x ",
		"| big500   | POST pods | 500      | 500       |",
		"| big500   | 5                  | 3         | 1.33x                 | 2.00x                               |",
		"- big500: a Job of 500 Pods, 500 at once",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "**default**") {
		t.Errorf("a limit under which nothing was measured has a table:\n%s", out.String())
	}
}
