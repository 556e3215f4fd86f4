package schedule

// every is @every: anchor + k * step for k = 1, 2, 3, …
type every struct{ anchor, step int64 } // Unix seconds, and seconds > 0

func (e every) next(from int64) (int64, bool) {
	k, rest := floorDiv(from-e.anchor, e.step)
	if rest > 0 {
		k++
	}
	u := e.anchor + max(k, 1)*e.step
	return u, u <= latest
}

func (e every) prev(upTo int64) (int64, bool) {
	k, _ := floorDiv(upTo-e.anchor, e.step)
	return e.anchor + k*e.step, k >= 1
}

func (e every) count(first, last int64) int64 {
	upTo := func(u int64) int64 {
		k, _ := floorDiv(u-e.anchor, e.step)
		return max(k, 0)
	}
	return upTo(last) - upTo(first-1)
}
