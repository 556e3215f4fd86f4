//go:build linux

package processnode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/jobstream/jobstream/internal/dev/processnode/sandbox"
)

// messageLimit is the size limit of a container's termination message, and fallbackLimit how much of its log replaces one; both
// are the kubelet's.
const (
	messageLimit  = 4096
	fallbackLimit = 2048
	fallbackLines = 80
)

// processes is the launcher that runs real processes. In dir there are, side by side:
//
//	<uid>.<container>           where a container without a workingDir starts
//	<uid>.<container>.root      where its new root is put together; always empty on the host
//	<uid>.<container>.message   its termination message
//	<uid>.<container>.<n>.log   what its n-th run has written, if it is much
//	<uid>..volumes/<volume>     as containers see them
//
// Names of containers are not empty and hold no dots. What is not needed is not made, and there are no folders of
// folders: to make one costs a file system more than to fork a process.
type processes struct {
	dir      string
	client   kubernetes.Interface
	ip       string
	mark     string // in every environment, so that strays can be found
	capacity v1.ResourceList
	starter  *starter
	logs     *logs

	mu    sync.Mutex
	paths map[types.UID][]string // made for a Pod, logs and volumes aside
}

func (l *processes) launch(ctx context.Context, r run, ended func(exit)) (handle, error) {
	if len(r.container.Command) == 0 {
		return nil, broken{fmt.Errorf("the development node runs commands, not images: give the container %s a command",
			r.container.Name)}
	}
	c, message, err := l.command(ctx, r)
	if err != nil {
		return nil, err
	}
	home := l.path(r.pod.UID, r.container.Name)
	log := l.logs.create(home+"."+strconv.Itoa(int(r.number))+".log", r.pod.UID, r.container.Name)
	started := time.Now()
	p, err := l.starter.start(c, log, func(state *os.ProcessState, finished time.Time) {
		log.end()
		e := exitOf(state, exit{id: r.id, started: started, finished: finished})
		if e.message == "" {
			e.message = terminationMessage(message, r.container.TerminationMessagePolicy, e.code, log)
		}
		ended(e)
	})
	if err != nil {
		fmt.Fprintf(logLine{log}, "%v\n", err)
		log.end()
		return nil, err
	}
	return p, nil
}

// command prepares everything that the run needs. message is where a termination message will be found.
func (l *processes) command(ctx context.Context, r run) (c command, message string, err error) {
	home := l.path(r.pod.UID, r.container.Name)
	if err := l.folder(r.pod.UID, home); err != nil {
		return c, "", unready{err}
	}
	res := resolver{pod: r.pod, ip: l.ip, objects: apiObjects{l.client}, capacity: l.capacity}
	env, err := res.environment(ctx, r.container)
	if err != nil {
		return c, "", unready{err}
	}
	hostname := r.pod.Spec.Hostname
	if hostname == "" {
		hostname = r.pod.Name
	}
	env.setDefault("HOSTNAME", hostname)
	env.setDefault("PATH", os.Getenv("PATH"))
	env.setDefault("HOME", home)
	// The command sees the variables of the container; the mark comes after it has been expanded.
	c.args = append(expandAll(r.container.Command, env), expandAll(r.container.Args, env)...)
	env.set(markName, l.mark)
	c.env, c.path = env.list(), env.values["PATH"]

	if c.dir = r.container.WorkingDir; c.dir == "" {
		c.dir = home
	}
	v := volumes{resolver: res, dir: l.path(r.pod.UID, ".volumes"), token: l.token}
	mounts, message, err := mountsOf(ctx, v, r.container, home+".message")
	l.own(r.pod.UID, message)
	if err != nil {
		return c, "", err
	}
	// Container runtimes make a working directory that the image does not have; the host must not keep one.
	if _, err := os.Stat(c.dir); len(mounts) > 0 || err != nil {
		stage := home + ".root"
		if err := l.folder(r.pod.UID, stage); err != nil {
			return c, "", unready{err}
		}
		c.sandbox = &sandbox.Spec{Stage: stage, Mounts: mounts, Dir: c.dir, Args: c.args}
	}
	return c, message, nil
}

func (l *processes) path(uid types.UID, name string) string {
	return filepath.Join(l.dir, string(uid)+"."+name)
}

// folder makes a folder for the Pod unless an earlier run has.
func (l *processes) folder(uid types.UID, path string) error {
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	l.own(uid, path)
	return err
}

// own records a file or folder to be removed with the Pod.
func (l *processes) own(uid types.UID, path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if path != "" && !slices.Contains(l.paths[uid], path) {
		l.paths[uid] = append(l.paths[uid], path)
	}
}

// mountsOf makes the volumes that the container mounts, and the file for its termination message if its command mentions one: a
// file for every container would cost each a sandbox.
func mountsOf(ctx context.Context, v volumes, c *v1.Container, file string) (mounts []sandbox.Mount, message string, err error) {
	for _, m := range c.VolumeMounts {
		path, readOnly, err := v.volume(ctx, m.Name, c)
		if err != nil {
			if errors.As(err, &broken{}) {
				return nil, "", err
			}
			return nil, "", unready{fmt.Errorf("volume %s: %w", m.Name, err)}
		}
		sub := m.SubPath
		if m.SubPathExpr != "" {
			env, err := v.environment(ctx, c)
			if err != nil {
				return nil, "", unready{err}
			}
			sub = expand(m.SubPathExpr, env.lookup)
		}
		if path, err = subPath(path, sub); err != nil {
			return nil, "", err
		}
		mounts = append(mounts, sandbox.Mount{Source: path, Target: m.MountPath, ReadOnly: readOnly || m.ReadOnly})
	}
	if p := c.TerminationMessagePath; p != "" && strings.Contains(strings.Join(append(c.Command, c.Args...), " "), p) {
		message = file
		if err := os.WriteFile(message, nil, 0o666); err != nil {
			return nil, "", unready{err}
		}
		mounts = append(mounts, sandbox.Mount{Source: message, Target: p})
	}
	return mounts, message, nil
}

// terminationMessage returns the message that the container has left for its status.
func terminationMessage(path string, policy v1.TerminationMessagePolicy, code int32, log *logFile) string {
	if path != "" {
		if b := head(path, messageLimit); len(b) > 0 {
			return string(b)
		}
	}
	if policy != v1.TerminationMessageFallbackToLogsOnError || code == 0 {
		return ""
	}
	var text bytes.Buffer
	_ = log.read(context.Background(), logQuery{tail: fallbackLines, limit: -1}, &text, func() {})
	b := text.Bytes()
	return string(bytes.ToValidUTF8(b[max(0, len(b)-fallbackLimit):], nil))
}

func head(path string, limit int64) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, limit))
	return b
}

func (l *processes) token(ctx context.Context, namespace, account string, spec authv1.TokenRequestSpec) (string, error) {
	t, err := l.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, &authv1.TokenRequest{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return t.Status.Token, nil
}

func (l *processes) rest(uid types.UID) { removeAll(l.path(uid, ".volumes")) }

func (l *processes) forget(uid types.UID) {
	l.logs.forget(uid)
	l.rest(uid)
	l.mu.Lock()
	paths := l.paths[uid]
	delete(l.paths, uid)
	l.mu.Unlock()
	for _, path := range paths {
		removeAll(path)
	}
}

func (l *processes) setMark(mark string) { l.mark = mark }

func (l *processes) clear() {
	if l.mark != "" {
		killStrays(l.mark)
	}
}

func (l *processes) close() { l.starter.close() }

// logLine writes a message of the node into a container's log, as the container's stderr.
type logLine struct{ *logFile }

func (l logLine) Write(b []byte) (int, error) {
	l.copy("stderr", bytes.NewReader(b))
	return len(b), nil
}
