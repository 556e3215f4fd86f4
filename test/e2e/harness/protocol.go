package harness

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// Protocol is what clients have sent to the NATS server, from its log, if Config.Deployed is set.
type Protocol struct {
	file    string
	offset  int64
	clients map[string]*NATSClient
}

// NATSClient is one connection.
type NATSClient struct {
	// User and Name are those that it has sent.
	User, Name string
	// Published and Subscribed are the subjects that it has used. Publications with a header that no server can satisfy are
	// omitted: the doctor sends them to test its permissions.
	Published, Subscribed map[string]bool
	// Refused are the server's errors about subjects.
	Refused []string

	last string // the subject published by the previous line, without its headers
}

// Protocol starts to read the log.
func (s *System) Protocol() *Protocol {
	return &Protocol{file: s.NATS.LogFile, clients: map[string]*NATSClient{}}
}

// Permissions returns those of each user, from the configuration that the server runs with.
func (s *System) Permissions() (map[string]*server.Permissions, error) {
	o, err := server.ProcessConfigFile(s.path("nats.conf"))
	if err != nil {
		return nil, err
	}
	all := map[string]*server.Permissions{}
	for _, u := range o.Users {
		all[u.Username] = u.Permissions
	}
	return all, nil
}

// spoken matches a line about a client: the process of the server, the number of the client, and the protocol line. Lines that a
// client sends begin with "<<-".
var spoken = regexp.MustCompile(`^\[(\d+)\] .*? - cid:(\d+) - (.*)$`)

// impossible matches the headers of publications that the doctor sends to be refused: bus/inspect_permissions.go.
var impossible = regexp.MustCompile(`Nats-Required-Api-Level: ?1000000|jobstream\.doctor\.never`)

// Read reads on, and returns all clients so far.
func (p *Protocol) Read() ([]*NATSClient, error) {
	f, err := os.Open(p.file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Seek(p.offset, io.SeekStart); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1] // the last line may be incomplete
	p.offset += int64(len(text))
	for line := range strings.Lines(string(text)) {
		if m := spoken.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			p.client(m[1] + "/" + m[2]).record(m[3])
		}
	}
	var all []*NATSClient
	for _, c := range p.clients {
		all = append(all, c)
	}
	return all, nil
}

func (p *Protocol) client(id string) *NATSClient {
	c := p.clients[id]
	if c == nil {
		c = &NATSClient{Published: map[string]bool{}, Subscribed: map[string]bool{}}
		p.clients[id] = c
	}
	return c
}

func (c *NATSClient) record(line string) {
	if strings.Contains(line, " Violation") && !strings.Contains(line, "<<- ") && !strings.Contains(line, "->> ") {
		c.Refused = append(c.Refused, line)
		return
	}
	_, said, ok := strings.Cut(line, "<<- ")
	if !ok {
		return
	}
	if strings.HasPrefix(said, "MSG_PAYLOAD") {
		if impossible.MatchString(said) {
			delete(c.Published, c.last)
		}
		c.last = ""
		return
	}
	verb, arguments, _ := strings.Cut(strings.Trim(said, "[]"), " ")
	subject, _, _ := strings.Cut(arguments, " ")
	switch verb {
	case "CONNECT":
		var who struct{ User, Name string }
		if json.Unmarshal([]byte(arguments), &who) == nil {
			c.User, c.Name = who.User, who.Name
		}
	case "PUB", "HPUB":
		c.last = ""
		if !c.Published[subject] {
			c.Published[subject], c.last = true, subject
		}
	case "SUB":
		c.Subscribed[subject] = true
	}
}
