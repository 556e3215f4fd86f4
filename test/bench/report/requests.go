package report

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"

	"k8s.io/client-go/kubernetes"
)

// Subtract leaves what has been added since then, by the names of what grows, and leaves out what has not changed.
func Subtract(from, what map[string]float64) {
	for key, n := range what {
		from[key] = math.Round((from[key]-n)*1000) / 1000 // hundredths of a second are no binary fractions
	}
	maps.DeleteFunc(from, func(_ string, n float64) bool { return n == 0 })
}

// Requests asks the API server, as an administrator, which requests it has answered, by verb and resource, such as "PATCH
// jobs/status". Those that it refused with an error of the client's, such as a conflict, are in both maps.
func Requests(ctx context.Context, c kubernetes.Interface) (requests, refused map[string]float64, err error) {
	page, err := c.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("metrics of the API server: %w", err)
	}
	return parse(string(page))
}

// series is the metric that counts requests.
const series = "apiserver_request_total"

// parse adds up the series by verb and resource. Those whose code is 400 to 499 were refused, and are in both.
func parse(page string) (requests, refused map[string]float64, err error) {
	requests, refused = map[string]float64{}, map[string]float64{}
	err = samples(page, series, func(labels string, n float64) {
		key := label(labels, "verb") + " " + label(labels, "resource")
		if sub := label(labels, "subresource"); sub != "" {
			key += "/" + sub
		}
		requests[key] += n
		if strings.HasPrefix(label(labels, "code"), "4") {
			refused[key] += n
		}
	})
	return requests, refused, err
}

// Sum adds up all series of a metric of a page that Prometheus could scrape; 0 without any.
func Sum(page, metric string) (sum float64, err error) {
	err = samples(page, metric, func(_ string, n float64) { sum += n })
	return sum, err
}

// samples visits each series of a metric, with its labels as they are written, and its value.
func samples(page, metric string, visit func(labels string, value float64)) error {
	lines := bufio.NewScanner(strings.NewReader(page))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), metric)
		if !ok || rest == "" || rest[0] != '{' && rest[0] != ' ' {
			continue // another metric
		}
		labels := ""
		if rest[0] == '{' {
			labels, rest, ok = strings.Cut(rest[1:], "}")
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
		if !ok || err != nil {
			return fmt.Errorf("cannot read %q", lines.Text())
		}
		visit(labels, n)
	}
	return lines.Err()
}

// label returns the value of a label; none of this metric's values has a quotation mark, a comma or a brace.
func label(labels, name string) string {
	for pair := range strings.SplitSeq(labels, ",") {
		if value, ok := strings.CutPrefix(pair, name+`="`); ok {
			return strings.TrimSuffix(value, `"`)
		}
	}
	return ""
}
