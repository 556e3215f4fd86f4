package trace

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// collector is the address that the environment names, for people; "" where it names none, or wants no spans. All other
// variables of OpenTelemetry are read by its SDK. It is an error to ask for what we cannot do: nobody would look for spans that
// are not there.
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
		return "", fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q: we speak %s only, for which a collector listens on port 4318 as a rule", p, spoken)
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
