package harness

import (
	"bufio"
	"net"
	"testing"
	"time"
)

// Data sent over a cut link arrives once it is healed, and not before.
func TestLinkHoldsBackWhatIsCut(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	arrived := make(chan string, 10)
	go func() {
		c, err := server.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		for lines := bufio.NewScanner(c); lines.Scan(); {
			arrived <- lines.Text()
		}
		close(arrived)
	}()
	l, err := NewLink("a", "b", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", l.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	send := func(line string) {
		if _, err := c.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	receive := func(want string) {
		select {
		case got := <-arrived:
			if got != want {
				t.Fatalf("received %q, want %q", got, want)
			}
		case <-time.After(readyTimeout):
			t.Fatalf("never received %q", want)
		}
	}
	send("before")
	receive("before")
	l.Cut()
	send("during")
	select {
	case got := <-arrived:
		t.Fatalf("%q has passed a cut link", got)
	case <-time.After(200 * time.Millisecond):
	}
	l.Heal()
	receive("during")
	const delay = 300 * time.Millisecond
	l.Slow(delay)
	began := time.Now()
	send("slow")
	receive("slow")
	if took := time.Since(began); took < delay {
		t.Errorf("it took %v", took)
	}
	l.Cut()
	send("never")
	if err := l.Close(); err != nil { // though data waits
		t.Fatal(err)
	}
	if got, ok := <-arrived; ok {
		t.Errorf("%q has passed a closed link", got)
	}
	if l.Carried() == 0 {
		t.Error("nothing was carried")
	}
}
