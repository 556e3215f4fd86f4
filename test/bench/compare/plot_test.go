package main

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A rate and a time that are both twice as good are bars of the same length; what is slower is on the other side of 1.
func TestPlot(t *testing.T) {
	pair := func(measure string, theirs, own float64) []measurement {
		w := "big500"
		if measure != "Pods/s" {
			w = "failing"
		}
		m := measurement{Round: 1, Limit: limits[0].name, Workload: w}
		a, b := m, m
		a.Side, a.Values = builtIn, map[string]float64{measure: theirs}
		b.Side, b.Values = jobstream, map[string]float64{measure: own}
		return []measurement{a, b}
	}
	for _, c := range []struct {
		name           string
		measure        string
		builtIn, other float64
		width          float64
		faster         bool
	}{
		{"twice the rate", "Pods/s", 100, 200, 210, true},
		{"half the time", "s until all ended", 4, 2, 210, true},
		{"half the rate", "Pods/s", 200, 100, 210, false},
		{"the same", "Pods/s", 100, 100, 0, true},
	} {
		r := &results{Measurements: pair(c.measure, c.builtIn, c.other)}
		svg := plot(r.bars(workloads, limits))
		wellFormed(t, svg)
		found := regexp.MustCompile(`width="([0-9.]+)" height="14" fill="(#\w+)"`).FindStringSubmatch(svg)
		if found == nil {
			t.Fatalf("%s: no bar in\n%s", c.name, svg)
		}
		width, err := strconv.ParseFloat(found[1], 64)
		if err != nil || width != c.width || (found[2] == "#2f7d4f") != c.faster {
			t.Errorf("%s: a bar of %s, %s, want %v, faster %v", c.name, found[1], found[2], c.width, c.faster)
		}
	}
}

func TestPlotOfNothing(t *testing.T) { wellFormed(t, plot(nil)) }

func wellFormed(t *testing.T, svg string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
}
