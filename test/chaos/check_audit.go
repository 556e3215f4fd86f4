package chaos

import "github.com/jobstream/jobstream/test/e2e/harness"

// checkReleases marks the Pods that Kubernetes' own Job controller has let go before we did: they may be counted or not. It takes
// the finalizer off a Pod that goes and whose Job it does not know, and its watch of Jobs may be behind that of Pods when the API
// server has been away.
func (w world) checkReleases(requests []harness.Request, wrong *findings) {
	theirs, ours, lives := map[string]bool{}, map[string]bool{}, map[string]int{}
	for _, q := range requests {
		switch {
		case harness.OurPatch(q):
			ours[q.Name] = true
		case harness.BuiltInRelease(q) && !ours[q.Name]: // else there was nothing left for it to take off
			theirs[q.Name] = true
		}
	}
	for _, l := range w.lives {
		lives[l.name]++
	}
	n := 0
	for uid, l := range w.lives {
		if _, there := w.jobs[l.job]; there && theirs[l.name] && lives[l.name] == 1 { // of two of one name nobody knows which
			l.stripped = true
			w.lives[uid] = l
			n++
		}
	}
	if n > max(3, len(w.lives)/100) {
		wrong.add("Kubernetes' own Job controller has let %d of %d Pods go: too many to be believed", n, len(w.lives))
	}
}
