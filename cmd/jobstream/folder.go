package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/jobstream/jobstream/internal/app"
	"github.com/jobstream/jobstream/internal/cluster"
	"github.com/jobstream/jobstream/internal/flags"
	"github.com/jobstream/jobstream/internal/folder"
)

// program is the name in the folder's lock.
const program = "jobstream"

// place is the folder of NATS' data, and its port.
type place struct {
	dir  string
	port int
}

func (p *place) addPlace(f *pflag.FlagSet) {
	f.StringVar(&p.dir, "dir", "", "`folder` where NATS keeps its data; default one for each API server, $XDG_STATE_HOME/jobstream/ADDRESS, else ~/.local/state/jobstream/ADDRESS")
	f.IntVar(&p.port, "nats-port", usualPort, "`port` on 127.0.0.1 where NATS listens, for subscribers; 0 for none")
}

// url returns where subscribers and doctor reach NATS, "" if it does not listen.
func (p *place) url() string {
	if p.port == 0 {
		return ""
	}
	return "nats://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port))
}

// valid refuses an invalid port.
func (p *place) valid() error {
	if p.port < 0 || p.port > 65535 {
		return app.Usage{Err: fmt.Errorf("--nats-port %d: use 1 to 65535, or 0 for none", p.port)}
	}
	return nil
}

// settle chooses the folder for that API server, unless the user has named one.
//
// The folder is kept, because it is the only place of public events that their subscribers have not read yet. Everything else in
// it can be rebuilt, so in the words of the XDG base directories it is state, not data. Each API server has a folder of its own,
// so that the memory about one cluster never meets the Jobs of another. A folder has one owner, so that a second jobstream for
// the same cluster refuses to start instead of doing all work twice.
func (p *place) settle(api *rest.Config) error {
	if p.dir != "" {
		return nil
	}
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // such as "": by the specification, relative paths are ignored
		home, err := os.UserHomeDir()
		if err != nil {
			return &app.Fatal{Cannot: "find a folder for NATS", Err: err, Remedy: "name one with --dir (" + flags.EnvName("dir") + ")"}
		}
		state = filepath.Join(home, ".local", "state")
	}
	p.dir = filepath.Join(state, program, fileName(api.Host))
	return nil
}

// fileName turns the address of an API server into the name of a folder: 10.0.0.1_6443, or host_k8s_clusters_c-1.
func fileName(address string) string {
	if _, rest, found := strings.Cut(address, "://"); found {
		address = rest
	}
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-", r) {
			return r
		}
		return '_'
	}, cmp.Or(strings.Trim(address, "/."), "_"))
}

// open locks the folder.
func (p *place) open() (*folder.Folder, error) {
	f, err := folder.Open(p.dir, program)
	if err == nil {
		p.dir = f.Dir()
		return f, nil
	}
	remedy := "name a folder that you may write to with --dir (" + flags.EnvName("dir") + ")"
	if inUse := (*folder.InUse)(nil); errors.As(err, &inUse) {
		remedy = "one is enough for a cluster; for another cluster, name another folder with --dir (" + flags.EnvName("dir") + ")"
	}
	return nil, &app.Fatal{Cannot: "use the folder of NATS", Err: err, Remedy: remedy}
}

func (p *place) store() string { return filepath.Join(p.dir, "nats") }

// tokenFile is the file with the token that NATS requires of every client. A user who can read it can read the kubeconfig, too;
// other users of this machine can reach the port, and must not be able to give the reconciler orders.
func (p *place) tokenFile() string { return filepath.Join(p.dir, "token") }

// token returns the token of the last start, or a new one.
func (p *place) token() (string, error) {
	have, err := os.ReadFile(p.tokenFile())
	if token := strings.TrimSpace(string(have)); token != "" {
		return token, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", p.unusable(err)
	}
	token := rand.Text()
	if err := os.WriteFile(p.tokenFile(), []byte(token+"\n"), 0o600); err != nil {
		return "", p.unusable(err)
	}
	return token, nil
}

func (p *place) unusable(err error) error {
	return &app.Fatal{Cannot: "use the token of NATS", Err: err, Remedy: "name a folder that you may write to with --dir (" + flags.EnvName("dir") + ")"}
}

// visit points a command to the NATS server of a running jobstream.
func (p *place) visit(o *app.Options) error {
	if err := p.valid(); err != nil {
		return err
	}
	if p.port == 0 {
		return app.Usage{Err: errors.New("with --nats-port 0 NATS does not listen, so there is nothing to look at: start jobstream with a port")}
	}
	o.Kubeconfig = cluster.KubectlConfig(o.Kubeconfig)
	_, api, err := client(*o)
	if err != nil {
		return err
	}
	if err := p.settle(api); err != nil {
		return err
	}
	o.Bus.URL, o.Bus.TokenFile = p.url(), p.tokenFile()
	return nil
}
