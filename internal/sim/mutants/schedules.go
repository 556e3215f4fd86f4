package main

// ofSchedules are bugs in the verdicts on nominal times, and in the Jobs of a ScheduledJob.
var ofSchedules = []mutant{
	{name: "forbidden-jobs-overlap", file: "functions/scheduledjob/start.go",
		old: "v1alpha1.ForbidConcurrent && s.busy(left):",
		new: "v1alpha1.ForbidConcurrent && false:"},
	{name: "suspended-times-without-a-verdict", file: "functions/scheduledjob/cover.go",
		old: "			s = pass(s, t, last, events.Skipped, \"Suspended\", \"the ScheduledJob was suspended\")",
		new: "			s.Until = last"},
	{name: "jobs-deleted-uncounted", file: "functions/scheduledjob/history.go",
		old: "!r.Gone && !r.New && !r.Run.Deleting && !s.counts(r.Run.UID) && !r",
		new: "!r.Gone && !r.Run.Deleting && !r"},
	{name: "user-started-without-a-verdict", file: "functions/scheduledjob/byhand.go",
		old: "		b.status.Recent = append(b.status.Recent, v)\n",
		new: ""},
	{name: "user-started-deleted", file: "functions/scheduledjob/history.go",
		old: " && !r.Run.Manual && !s.counts",
		new: " && !s.counts"},
	{name: "claim-forgotten", file: "functions/scheduledjob/start.go",
		old: "			d.Intended = true\n",
		new: ""},
	{name: "deleted-while-a-request-is-under-way", file: "functions/scheduledjob/start.go",
		old: "	over := r.Again.Add(underWay)",
		new: "	over := r.Again"},
}
