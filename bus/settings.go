package bus

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// The program that started last decides the settings of a stream: it updates them, so that a rolling restart with another flag
// changes them. A running program with other flags does not write them back; it reports the difference with both values. So two
// programs with different flags do not fight, and neither is silent.

// merge overrides the settings for correctness and bounds in those of the existing stream.
func merge(have, want jetstream.StreamConfig) (merged jetstream.StreamConfig, differs bool) {
	merged = have
	merged.Subjects = want.Subjects
	merged.SubjectTransform = want.SubjectTransform
	merged.Discard = want.Discard
	merged.Replicas = want.Replicas
	merged.MaxAge = want.MaxAge
	merged.MaxBytes = unlimited(want.MaxBytes)
	merged.MaxMsgs = unlimited(want.MaxMsgs)
	merged.MaxMsgsPerSubject = unlimited(want.MaxMsgsPerSubject)
	merged.Duplicates = want.Duplicates
	merged.AllowDirect = want.AllowDirect
	merged.AllowRollup = want.AllowRollup
	merged.AllowMsgTTL = want.AllowMsgTTL
	merged.AllowMsgSchedules = want.AllowMsgSchedules
	return merged, len(differences(have, merged)) > 0
}

// difference is one setting in which a stream differs from the flags, named as in the server's configuration.
type difference struct{ setting, have, want string }

func (d difference) String() string {
	return fmt.Sprintf("%s is %s, not %s", d.setting, d.have, d.want)
}

// differences compares the settings that jobstream owns.
func differences(have, want jetstream.StreamConfig) (all []difference) {
	for _, s := range []struct {
		setting    string
		have, want string
	}{
		{"subjects", strings.Join(have.Subjects, ","), strings.Join(want.Subjects, ",")},
		{"subject_transform", transform(have), transform(want)},
		{"discard", have.Discard.String(), want.Discard.String()},
		{"num_replicas", strconv.Itoa(have.Replicas), strconv.Itoa(want.Replicas)},
		{"max_age", have.MaxAge.String(), want.MaxAge.String()},
		{"max_bytes", strconv.FormatInt(have.MaxBytes, 10), strconv.FormatInt(want.MaxBytes, 10)},
		{"max_msgs", strconv.FormatInt(have.MaxMsgs, 10), strconv.FormatInt(want.MaxMsgs, 10)},
		{"max_msgs_per_subject", strconv.FormatInt(have.MaxMsgsPerSubject, 10), strconv.FormatInt(want.MaxMsgsPerSubject, 10)},
		{"duplicate_window", have.Duplicates.String(), want.Duplicates.String()},
		{"allow_direct", strconv.FormatBool(have.AllowDirect), strconv.FormatBool(want.AllowDirect)},
		{"allow_rollup_hdrs", strconv.FormatBool(have.AllowRollup), strconv.FormatBool(want.AllowRollup)},
		{"allow_msg_ttl", strconv.FormatBool(have.AllowMsgTTL), strconv.FormatBool(want.AllowMsgTTL)},
		{"allow_msg_schedules", strconv.FormatBool(have.AllowMsgSchedules), strconv.FormatBool(want.AllowMsgSchedules)},
	} {
		if s.have != s.want {
			all = append(all, difference{s.setting, s.have, s.want})
		}
	}
	return all
}

// texts formats differences for people.
func texts(all []difference) string {
	out := make([]string, len(all))
	for i, d := range all {
		out[i] = d.String()
	}
	return strings.Join(out, ", ")
}

// conflict describes the settings in which a stream differs from the flags, and the remedy; "" where there is no difference.
func (b *Bus) conflict(have, want jetstream.StreamConfig) (what, remedy string) {
	merged, differs := merge(have, want)
	if !differs {
		return "", ""
	}
	all := differences(have, merged)
	flags := map[string]bool{}
	for _, d := range all {
		if f := b.flagOf(want.Name, d.setting); f != "" {
			flags[f] = true
		}
	}
	remedy = "are all programs of this cluster of one version, and has a user edited the stream? A program that starts brings it in line"
	if len(flags) > 0 {
		remedy = "give all programs of this cluster the same " + strings.Join(sortedKeys(flags), ", ") + ", and restart those that had another: the last that starts decides"
	}
	return texts(all), remedy
}

// flagOf returns the flag that sets a setting, "" where there is none.
func (b *Bus) flagOf(stream, setting string) string {
	switch {
	case setting == "num_replicas":
		return "--nats-replicas"
	case setting == "max_bytes" && stream == b.names.facts():
		return "--nats-facts-bytes"
	case setting == "max_bytes" && b.names.remembers(stream):
		return "--nats-state-bytes"
	case setting == "max_bytes" && stream == b.names.events():
		return "--nats-events-bytes"
	case stream == b.names.events() && (setting == "max_age" || setting == "duplicate_window"):
		return "--nats-events-age"
	}
	return ""
}

// settled records how a stream differs from the flags after a look, and logs a change once.
func (t *topology) settled(s *streamState) {
	what, remedy := t.bus.conflict(s.info.Config, s.want)
	switch what {
	case s.conflict:
		return
	case "":
		t.bus.log.Info("stream has the configured settings again", "stream", s.want.Name)
	default:
		t.bus.log.Error("stream has other settings than configured: another program has started with other flags", "stream", s.want.Name, "differs", what, "remedy", remedy)
	}
	s.conflict, s.remedy = what, remedy
}

// conflicts returns nil while all streams have the configured settings.
func (t *topology) conflicts() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range sortedKeys(t.streams) {
		if s := t.streams[name]; s.conflict != "" {
			return fmt.Errorf("bus: stream %s has other settings than configured: %s: %s", name, s.conflict, s.remedy)
		}
	}
	return nil
}

// unlimited formats 0 as a server does.
func unlimited(n int64) int64 {
	if n == 0 {
		return -1
	}
	return n
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func transform(c jetstream.StreamConfig) string {
	if c.SubjectTransform == nil {
		return "none"
	}
	return c.SubjectTransform.Source + " to " + c.SubjectTransform.Destination
}
