// Package app is the code shared by the programs: flags and environment variables, logs, metrics, health, start and
// end, and the assembly of a trigger and a reconciler. It decides nothing about Jobs.
//
//	main.go:  os.Exit(app.Main(app.Program(command, ...)))
//
//	Main             signals, exit codes, errors that name the cause and the remedy     lifecycle.go, fatal.go
//	  flags, env     --nats-url is JOBSTREAM_NATS_URL; the flag takes precedence        flags.go, options.go
//	  RunTrigger     API server --watch--> bus                                          trigger.go
//	  RunReconciler  bus --turns--> API server                                          reconciler.go, member.go, announcements.go, spans.go
//	  RunAllInOne    both, with one of everything                                       allinone.go
//	    service      what both need: client, bus, logs, metrics, health                 service.go, log.go, metrics.go, health.go
//	      metrics    what programs do, under jobstream's names and Kubernetes'          jobmetrics.go, results.go, schedulemetrics.go
//	                 what a trigger sees; how many namespaces have series                censusmetrics.go, tenants.go
//
// RunTrigger and RunReconciler are ordinary functions that end with their context, so that the development command and
// tests run both in one process.
//
// A program ends in this order: it stops taking work, finishes what it has in hand, closes the bus, and closes the
// servers for metrics and health last, so that one can watch it end.
package app
