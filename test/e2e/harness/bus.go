package harness

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/nats-io/nats.go"
)

// NATS is a NATS server as a process of its own, on a port that it keeps.
type NATS struct {
	*Process
	// URL is where it listens, with the user that has all permissions.
	URL string

	dir  string
	user string // of URL; "" if the server has no users
	ca   string // file of the authority of its certificate; "" if it has none
}

var listening = regexp.MustCompile(`listening url=(\S+)`)

// StartNATS starts a server that stores in a new folder below dir.
func StartNATS(ctx context.Context, program, dir string, args ...string) (*NATS, error) {
	return startNATS(ctx, &NATS{}, program, dir, args...)
}

// startOnDisk starts a server with a max_file_store that exceeds the size of its disk.
func (s *System) startOnDisk(ctx context.Context) (*NATS, error) {
	conf := s.path("nats.conf")
	if err := os.WriteFile(conf, []byte("max_payload: 8MB\njetstream { max_file_store: 1TB }\n"), 0o600); err != nil {
		return nil, err
	}
	return startNATS(ctx, &NATS{dir: s.config.Disk}, s.config.Programs.NATS, s.config.Dir, "-config", conf)
}

func startNATS(ctx context.Context, n *NATS, program, dir string, args ...string) (*NATS, error) {
	n.dir = cmp.Or(n.dir, filepath.Join(dir, "nats"))
	n.Process = &Process{Name: "nats", Path: program, Args: append([]string{"-dir", n.dir}, args...), LogFile: filepath.Join(dir, "nats.log")}
	if err := n.start(ctx); err != nil {
		return nil, err
	}
	where, err := url.Parse(n.URL)
	if err != nil {
		return nil, err
	}
	n.Args = append(n.Args, "-port", where.Port())
	return n, nil
}

func (n *NATS) start(ctx context.Context) (err error) {
	if err := n.Start(); err != nil {
		return err
	}
	n.URL, err = n.Await(ctx, listening)
	n.URL = n.As(n.user)
	return err
}

// As returns the URL for a user of accounts.conf; URL, if there are no users.
func (n *NATS) As(user string) string {
	if n.user == "" {
		return n.URL
	}
	_, address, _ := strings.Cut(n.URL, "://")
	return "nats://" + user + ":" + password + "@" + address[strings.IndexByte(address, '@')+1:]
}

// Dial connects as a user of accounts.conf.
func (n *NATS) Dial(user string, o ...nats.Option) (*nats.Conn, error) {
	if n.ca != "" {
		o = append(o, nats.RootCAs(n.ca))
	}
	return nats.Connect(n.As(user), append([]nats.Option{nats.Timeout(readyTimeout)}, o...)...)
}

// Authority returns the file with the authority of the server's certificate, "" if it has none.
func (n *NATS) Authority() string { return n.ca }

// Wipe kills the server with kill -9 and deletes all its data.
func (n *NATS) Wipe() error { return errors.Join(n.Kill(), os.RemoveAll(n.dir)) }

// Restart starts the server again, on its former port. A connection of another program may hold the port for a moment; then it
// tries again.
func (n *NATS) Restart(ctx context.Context) error {
	return Poll(ctx, func(ctx context.Context) error {
		err := n.start(ctx)
		switch {
		case err == nil:
			return nil
		case strings.Contains(err.Error(), "address already in use"):
			return errors.New(err.Error()) // the server's own error is Hopeless for others, but not here
		}
		return Hopeless{err}
	})
}
