package main

import (
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// The plot's measures in pixels.
const (
	plotLeft, plotBars, plotRight = 330, 420, 120 // the names, the bars, the numbers
	barHeight, barStep            = 14, 22
	plotTop                       = 58
)

// bar is a ratio in the plot, such that more than 1 means that jobstream is faster.
type bar struct {
	label  string
	faster spread
}

// bars are the ratios of all pairs, of a time turned round.
func (r *results) bars(chosen []workload, limits []limit) (all []bar) {
	for _, l := range limits {
		for _, w := range chosen {
			for _, m := range w.measures {
				number := func(of measurement) (float64, bool) { n, ok := of.Values[m.name]; return n, ok }
				a, b := r.of(l, w, builtIn, number), r.of(l, w, jobstream, number)
				pairs := ratios(b, a)
				if !m.more {
					pairs = ratios(a, b)
				}
				if s := spreadOf(pairs); s.n > 0 {
					all = append(all, bar{fmt.Sprintf("%s, %s, %s", l.name, w.name, m.name), s})
				}
			}
		}
	}
	return all
}

// writePlot writes the plot to a file.
func (r *results) writePlot(path string, chosen []workload, limits []limit) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	fmt.Printf("Plot of the ratios: %s\n", path)
	return os.WriteFile(path, []byte(plot(r.bars(chosen, limits))), 0o644)
}

// plot draws the bars as SVG, to the right of 1 where jobstream is faster and to the left where it is slower. The scale is
// logarithmic: twice as fast and half as fast are as long.
func plot(bars []bar) string {
	widest := 2.0
	for _, b := range bars {
		widest = max(widest, b.faster.most, 1/max(b.faster.least, 1e-6))
	}
	doublings := math.Ceil(math.Log2(widest))
	x := func(ratio float64) float64 {
		return plotLeft + plotBars/2*(1+math.Log2(max(ratio, 1e-6))/doublings)
	}
	width, height := plotLeft+plotBars+plotRight, plotTop+barStep*len(bars)+10
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", width, height, width, height)
	fmt.Fprintf(&s, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	fmt.Fprintf(&s, `<text x="10" y="20" font-size="14">How many times as fast as the built-in controller: median of pairs, and their range</text>`+"\n")
	step := math.Ceil(doublings / 4)
	for p := -step * math.Floor(doublings/step); p <= doublings; p += step {
		at := x(math.Exp2(p))
		fmt.Fprintf(&s, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#cccccc"/>`+"\n", at, plotTop-8, at, height-6)
		fmt.Fprintf(&s, `<text x="%.1f" y="%d" text-anchor="middle" fill="#555555">%s</text>`+"\n", at, plotTop-14, tick(p))
	}
	for i, b := range bars {
		y, from, to, color := plotTop+barStep*i, x(1), x(b.faster.median), "#2f7d4f"
		if b.faster.median < 1 {
			from, to, color = to, from, "#b5502f"
		}
		fmt.Fprintf(&s, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", plotLeft-10, y+barHeight-3, html.EscapeString(b.label))
		fmt.Fprintf(&s, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", from, y, to-from, barHeight, color)
		fmt.Fprintf(&s, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#000000"/>`+"\n", x(b.faster.least), y+barHeight/2, x(b.faster.most), y+barHeight/2)
		fmt.Fprintf(&s, `<text x="%d" y="%d">%.2fx</text>`+"\n", plotLeft+plotBars+12, y+barHeight-3, b.faster.median)
	}
	s.WriteString("</svg>\n")
	return s.String()
}

// tick is the label of a power of two.
func tick(power float64) string {
	if power < 0 {
		return fmt.Sprintf("1/%.0fx", math.Exp2(-power))
	}
	return fmt.Sprintf("%.0fx", math.Exp2(power))
}
