package engine

// Keys returns how many keys the runner knows.
func (r *Runner) Keys() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for range r.states() {
		n++
	}
	return n
}
