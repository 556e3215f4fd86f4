package chaos

import "github.com/jobstream/jobstream/test/e2e/harness"

// checkStripped marks the Pods whose finalizer the built-in Job controller removed before the reconciler did: they may be counted or
// not. The built-in controller removes it from a Pod being deleted whose Job it does not know, and after an outage of the API
// server its watch of Jobs may be behind that of Pods.
func (w world) checkStripped(requests []harness.Request, wrong *findings) {
	theirs, reconcilers, lives := map[string]bool{}, map[string]bool{}, map[string]int{}
	for _, q := range requests {
		switch {
		case harness.OurPatch(q):
			reconcilers[q.Name] = true
		case harness.BuiltInPatch(q) && !reconcilers[q.Name]: // otherwise it found no finalizer to remove
			theirs[q.Name] = true
		}
	}
	for _, l := range w.lives {
		lives[l.name]++
	}
	n := 0
	for uid, l := range w.lives {
		if _, there := w.jobs[l.job]; there && theirs[l.name] && lives[l.name] == 1 { // of two Pods with one name, it may have been either
			l.stripped = true
			w.lives[uid] = l
			n++
		}
	}
	if n > max(10, len(w.lives)/50) {
		wrong.add("the built-in Job controller has removed the finalizers of %d of %d Pods: implausibly many", n, len(w.lives))
	}
}
