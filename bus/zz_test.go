package bus
import ("testing";"time";"sync")
func TestZZ(t *testing.T) {
	s := serve(t)
	b := connect(t, s)
	e := listen(t, b, AllLanes(), nil)
	at := time.Now().Add(4*time.Second)
	n0 := time.Now()
	var wg sync.WaitGroup
	for w := range 16 { wg.Go(func() { for n := w; n < 5000; n += 16 { if err := b.Timers().Set(t.Context(), keyOf(uid(n)), "x", at); err != nil { t.Error(err) } } }) }
	wg.Wait()
	t.Log("5000 set in", time.Since(n0))
	until(t, "ring", func() bool { return e.count(isRing) >= 5000 })
	t.Log("all heard", time.Since(at), "deliveries", e.count(nil))
	m := time.Now()
	until(t, "swept", func() bool { return messages(t, b, b.names.timers()) == 0 })
	t.Log("swept after", time.Since(m))
}
