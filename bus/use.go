package bus

// Use is how full a stream is.
type Use struct {
	// Stream is its name on the server.
	Stream string
	// Bytes is what it takes, MaxBytes what it may take: beyond, its oldest messages go. -1 is no limit.
	Bytes, MaxBytes int64
}

// Uses are how full the streams of this program were when they were last looked at, seconds ago: nobody asks for it. There
// are none while the streams do not stand.
func (b *Bus) Uses() (all []Use) {
	b.top.mu.Lock()
	defer b.top.mu.Unlock()
	if b.top.broken != nil {
		return nil
	}
	for _, name := range sortedKeys(b.top.streams) {
		if b.top.streams[name].created.IsZero() {
			continue // others have not made it yet
		}
		i := b.top.streams[name].info
		all = append(all, Use{Stream: name, Bytes: int64(i.State.Bytes), MaxBytes: i.Config.MaxBytes}) //nolint:gosec // it is no exabyte
	}
	return all
}

// drops says that a full stream takes what somebody needs: not so for facts, of which the oldest have been heard long ago.
func (n names) drops(stream string) bool { return stream == n.timers() || n.remembers(stream) }
