package trace

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// collector returns the address in the environment, for the log; "" if it names none, or wants no spans. OpenTelemetry's SDK
// reads all other variables. An unsupported setting is an error, because otherwise the missing spans would go unnoticed.
func collector() (string, error) {
	variable := "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	if os.Getenv(variable) == "" {
		variable = "OTEL_EXPORTER_OTLP_ENDPOINT"
	}
	endpoint, exporter := os.Getenv(variable), os.Getenv("OTEL_TRACES_EXPORTER")
	if endpoint == "" || exporter == "none" || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return "", nil
	}
	if exporter != "" && exporter != "otlp" {
		return "", fmt.Errorf("OTEL_TRACES_EXPORTER is %q: use otlp, or none", exporter)
	}
	const spoken = "http/protobuf"
	if p := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), spoken); p != spoken {
		return "", fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q: only %s is supported, for which a collector usually listens on port 4318", p, spoken)
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", fmt.Errorf("%s cannot be read: write a URL, such as http://collector:4318", variable) // it may hold a password
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("%s is %q: write a URL, such as http://collector:4318", variable, u.Redacted())
	}
	return u.Redacted(), nil
}
