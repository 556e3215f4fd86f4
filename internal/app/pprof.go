package app

import (
	"net/http"
	"net/http/pprof"
)

// pprofHandler serves profiles of this process to "go tool pprof". The command line is left out: it may hold the URL of NATS with its
// password. A heap profile has the names of functions, and nothing of what is stored.
func pprofHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index) // and by its name each profile that package runtime keeps
	mux.HandleFunc("GET /debug/pprof/cmdline", http.NotFound)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
