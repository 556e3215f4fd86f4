package main

// mutant is one deliberate bug.
type mutant struct {
	name, means string
	file        string
	old, new    string
}

// none is no bug: the checker must find nothing.
var none = mutant{name: "none", means: "the code as it is"}

// mutants each break another promise: of the counts, of the memory that may be lost, of the announcements.
var mutants = []mutant{
	{name: "unhold-before-count", means: "a Pod loses its finalizer before its end is in the status (KEP-2307, step 3)",
		file: "functions/job/tracking.go",
		old:  "case listed || over ||",
		new:  "case p.Terminal() || listed || over ||"},
	{name: "decide-without-inventory", means: "the Pods of an inventory are ignored: a reconciler that has lost its memory takes the cluster for empty (law 3)",
		file: "functions/job/listed.go",
		old:  "	for _, p := range list.Pods {\n\t\tif p.Held || !s.piecemeal() {",
		new:  "	for _, p := range list.Pods[:0] {\n\t\tif p.Held || !s.piecemeal() {"},
	{name: "announcements-forgotten", means: "one announcement in ten is recorded as made, but was not",
		file: "internal/engine/rounds.go",
		old:  "	case effect.Announce:\n",
		new:  "	case effect.Announce:\n\t\tif t, ok := e.Event.(events.TickDecided); ok && t.Nominal.Unix()%10 == 0 {\n\t\t\treturn []events.Event{events.Announced{ID: events.PublicID(e.Event)}}, nil\n\t\t}\n"},
}
