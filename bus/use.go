package bus

// Use describes how full a stream is.
type Use struct {
	// Stream is its name on the server.
	Stream string
	// Bytes is its size, MaxBytes its limit: beyond it, the server drops the oldest messages. -1 is no limit.
	Bytes, MaxBytes int64
}

// Uses returns the fill levels of this program's streams as of the last look, seconds ago; it makes no request. It returns none
// while the streams do not exist.
func (b *Bus) Uses() (all []Use) {
	b.top.mu.Lock()
	defer b.top.mu.Unlock()
	if b.top.broken != nil {
		return nil
	}
	for _, name := range sortedKeys(b.top.streams) {
		if b.top.streams[name].created.IsZero() {
			continue // no program has created it yet
		}
		i := b.top.streams[name].info
		all = append(all, Use{Stream: name, Bytes: int64(i.State.Bytes), MaxBytes: i.Config.MaxBytes}) //nolint:gosec // it is no exabyte
	}
	return all
}

// drops reports whether the stream loses needed messages when it is full: not so for facts, the oldest of which were received
// long ago.
func (n names) drops(stream string) bool { return stream == n.timers() || n.remembers(stream) }
