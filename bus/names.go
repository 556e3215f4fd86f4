package bus

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jobstream/jobstream/events"
)

// Headers that jobstream adds to quarantined messages. Those of NATS are set through nats.go's options.
const (
	headerSubject   = "Jobstream-Subject"   // the subject that the message was stored under
	headerStream    = "Jobstream-Stream"    // the stream that held it
	headerSequence  = "Jobstream-Sequence"  // its sequence in that stream
	headerReason    = "Jobstream-Reason"    // why it was quarantined
	headerTime      = "Jobstream-Time"      // when, RFC 3339
	headerTruncated = "Jobstream-Truncated" // the length of the payload where it had to be cut
	headerKey       = "Jobstream-Key"       // "<function>.<namespace>.<uid>" as tokens
	headerRequeue   = "Jobstream-Requeue"   // the command that puts it back
)

// Headers of NATS that nats.go has no constant for, or whose value needs more precision than its option allows.
const (
	headerSchedule       = "Nats-Schedule"
	headerScheduleTarget = "Nats-Schedule-Target"
	headerKVOperation    = "KV-Operation"
	headerMarkerReason   = "Nats-Marker-Reason"
)

// maxClusterName keeps every subject well below a server's default control line (4 KiB).
const maxClusterName = 100

// names derives every subject, stream, bucket and consumer from the name of the cluster.
type names struct {
	token string // in subjects
	plain string // in names of streams and buckets, which allow fewer characters
	role  Role   // of this program
}

func newNames(cluster string, role Role) (names, error) {
	if cluster == "" {
		return names{}, errors.New("bus: the name of the cluster is empty: set Config.Cluster; it keeps the clusters that share one NATS apart")
	}
	if len(cluster) > maxClusterName {
		return names{}, fmt.Errorf("bus: the name of the cluster has %d bytes, at most %d are allowed", len(cluster), maxClusterName)
	}
	return names{token: events.Token(cluster), plain: plain(cluster), role: role}, nil
}

// plain escapes a part of a stream's or a bucket's name: letters, digits and '-' stay, every other byte becomes '_' and two upper
// case hexadecimal digits. Since '_' is always escaped, "_facts" and the like are unambiguous separators: two clusters never
// share a name.
func plain(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "_%02X", c)
	}
	return b.String()
}

// Streams.

func (n names) facts() string      { return "jobstream_" + n.plain + "_facts" }
func (n names) timers() string     { return "jobstream_" + n.plain + "_timers" }
func (n names) quarantine() string { return "jobstream_" + n.plain + "_quarantine" }
func (n names) events() string     { return "jobstream_" + n.plain + "_events" }

// bucket returns the name under which `nats kv` shows the state of a function.
func (n names) bucket(function string) string {
	return "jobstream_" + n.plain + "_state_" + plain(function)
}

func (n names) state(function string) string { return "KV_" + n.bucket(function) }

// Consumers.

func factsConsumer(function string, partition int) string {
	return fmt.Sprintf("%s-%02d", plain(function), partition)
}

func firedConsumer(function string, partition int) string {
	return fmt.Sprintf("%s-fired-%02d", plain(function), partition)
}

// Subjects. A published fact has six tokens and a stored one seven, and the stream listens to exactly six: so no client can
// publish a fact into a partition of its choice, and a stored subject never passes the transform again.

func (n names) published() string { return "facts." + n.token + ".*.*.*.*" }

// stored is the transform's destination: wildcard 3 of published is the UID.
func (n names) stored() string {
	return fmt.Sprintf("facts.%s.{{partition(%d,3)}}.{{wildcard(1)}}.{{wildcard(2)}}.{{wildcard(3)}}.{{wildcard(4)}}", n.token, events.Partitions)
}

func (n names) factsPartition(function string, partition int) string {
	return "facts." + n.token + "." + strconv.Itoa(partition) + "." + events.Token(function) + ".>"
}

// factsOf covers the stored facts about one key.
func (n names) factsOf(k events.Key) string {
	return "facts." + n.token + "." + strconv.Itoa(k.Partition()) + "." + k.Tokens() + ".*"
}

func (n names) schedules() string { return "timers." + n.token + ".*.*.*.*" }
func (n names) fired() string     { return "fired." + n.token + ".*.*.*.*.*" }

func (n names) schedule(k events.Key, name string) string {
	return "timers." + n.token + "." + k.Tokens() + "." + events.Token(name)
}

func (n names) firedTimer(k events.Key, name string) string {
	return "fired." + n.token + "." + strconv.Itoa(k.Partition()) + "." + k.Tokens() + "." + events.Token(name)
}

func (n names) firedPartition(function string, partition int) string {
	return "fired." + n.token + "." + strconv.Itoa(partition) + "." + events.Token(function) + ".>"
}

// unpartitioned returns the subject under which the stored fact was published; ok is false for any other subject.
func (n names) unpartitioned(stored string) (published string, ok bool) {
	t := strings.Split(stored, ".")
	if len(t) != 7 || t[0] != "facts" || t[1] != n.token {
		return "", false
	}
	return strings.Join(append(t[:2:2], t[3:]...), "."), true
}

// isFired reports whether the subject is that of one of this cluster's fired timers, which are stored as they are published.
func (n names) isFired(subject string) bool {
	t := strings.Split(subject, ".")
	return len(t) == 7 && t[0] == "fired" && t[1] == n.token
}

func (n names) quarantined() string { return n.family("quarantine") }

func (n names) aside(keyTokens string) string { return "quarantine." + n.token + "." + keyTokens }

// members is the subject of the reconcilers' heartbeats.
func (n names) members() string { return "members." + n.token }

// inbox is the prefix of the subjects for answers. Each role has its own, so that no role reads what another receives, such as
// states.
func (n names) inbox() string {
	if n.role == Everything {
		return "_INBOX_jobstream_" + n.plain
	}
	return "_INBOX_jobstream_" + n.plain + "_" + string(n.role)
}

// family covers all subjects of this cluster that begin with the word.
func (n names) family(word string) string { return word + "." + n.token + ".>" }

// announced covers all subjects that events.PublicSubject returns.
func (n names) announced() string { return "jobstream.events." + n.token + ".>" }

// announcedIn covers the public events of one namespace, "" for all, and of one kind, such as "job.finish", "" for all.
func (n names) announcedIn(namespace, kind string) string {
	of, rest := "*", ">"
	if namespace != "" {
		of = events.Token(namespace)
	}
	if kind != "" {
		rest = kind + ".>"
	}
	return "jobstream.events." + n.token + "." + of + "." + rest
}

// announcedAbout covers the public events of one kind about the object of that name. The kind has a word in its subject.
func (n names) announcedAbout(namespace, kind, name string) string {
	return "jobstream.events." + n.token + "." + events.Token(namespace) + "." + kind + ".*." + events.Token(name)
}

func (n names) values(function string) string { return "$KV." + n.bucket(function) + ".>" }

func (n names) value(k events.Key) string {
	return "$KV." + n.bucket(k.Function) + "." + events.Token(k.Namespace) + "." + events.Token(string(k.UID))
}

// floor is the subject of a partition's floor, among the states. No namespace's name holds '_'.
func (n names) floor(function string, partition int) string {
	return fmt.Sprintf("$KV.%s._floor.%02d", n.bucket(function), partition)
}

// keyTokens extracts "<function>.<namespace>.<uid>" from the subject of a stored fact or a fired timer, which both have seven
// tokens; ok is false for any other subject.
func keyTokens(subject string) (tokens string, ok bool) {
	t := strings.Split(subject, ".")
	if len(t) != 7 {
		return "", false
	}
	return strings.Join(t[3:6], "."), true
}

// remembers reports whether the stream holds the states of a function.
func (n names) remembers(stream string) bool { return strings.HasPrefix(stream, n.state("")) }

// works reports whether reconciling needs the stream: not so for those that only operators and subscribers read.
func (n names) works(stream string) bool { return stream != n.quarantine() && stream != n.events() }
