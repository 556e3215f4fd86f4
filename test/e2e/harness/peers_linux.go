package harness

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Peers returns the addresses to which the process has opened TCP connections, without those of its own clients.
func (p *Process) Peers() (map[string]bool, error) {
	l := p.current()
	if l == nil || !l.alive() {
		return nil, fmt.Errorf("%s does not run", p.Name)
	}
	dir := filepath.Join("/proc", strconv.Itoa(l.cmd.Process.Pid))
	own, err := sockets(dir)
	if err != nil {
		return nil, err
	}
	peers, listening := map[string]string{}, map[string]bool{} // both by local port
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(filepath.Join(dir, "net", table))
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line) // number, own address, the other's, state ... inode
			if len(f) < 10 || !own["socket:["+f[9]+"]"] {
				continue
			}
			_, port, _ := strings.Cut(f[1], ":")
			switch f[3] {
			case "0A":
				listening[port] = true
			case "01":
				if peers[port+"/"+f[9]], err = address(f[2]); err != nil {
					return nil, err
				}
			}
		}
	}
	all := map[string]bool{}
	for at, peer := range peers {
		if port, _, _ := strings.Cut(at, "/"); !listening[port] {
			all[peer] = true
		}
	}
	return all, nil
}

func sockets(dir string) (map[string]bool, error) {
	files, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		return nil, err
	}
	own := map[string]bool{}
	for _, f := range files {
		if to, err := os.Readlink(filepath.Join(dir, "fd", f.Name())); err == nil { // otherwise it has just been closed
			own[to] = true
		}
	}
	return own, nil
}

// address decodes an address of /proc/net: groups of 32 bits, each in the machine's byte order.
func address(text string) (string, error) {
	host, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	if err != nil {
		return "", err
	}
	for i := 0; i+4 <= len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	ip, ok := netip.AddrFromSlice(raw)
	n, err := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil {
		return "", fmt.Errorf("no address: %s", text)
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(n)).String(), nil
}
