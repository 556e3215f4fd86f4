package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// apiLevel is the lowest level of JetStream's API that has every feature in use here: 1 brought messages with a time to live
	// (2.11), 2 brought message schedules (2.12). Partitions by subject transforms are older than levels (2.10).
	apiLevel = 2
	// oldestServer is the first release with that level, for error messages.
	oldestServer = "2.12"
	// minPayload accepts both "8M", which a server reads as eight million bytes, and "8MB". The state of a Job with 20,000
	// unsettled Pods needs that much.
	minPayload = 8_000_000
)

// check checks that the server can do what the bus needs. Each error names the remedy.
func (b *Bus) check(ctx context.Context) error {
	info, err := b.account(ctx)
	if err != nil {
		return err
	}
	for _, lacks := range []*shortcoming{b.checkLevel(info), b.checkPayload()} {
		if lacks != nil {
			return lacks
		}
	}
	return nil
}

// shortcoming is an error about the server: what is wrong or missing, and the remedy.
type shortcoming struct{ cause, remedy string }

func (s *shortcoming) Error() string { return "bus: " + s.cause + ": " + s.remedy }

// account requests the limits and usage of the account: the one request that every server with JetStream answers.
func (b *Bus) account(ctx context.Context) (info *jetstream.AccountInfo, err error) {
	where := b.cfg.where()
	err = b.ask(ctx, askTimeout, func(ctx context.Context) (err error) {
		info, err = b.js.AccountInfo(ctx)
		return err
	})
	switch {
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled):
		return nil, &shortcoming{"JetStream is off on " + where, "start the server with -js, or with jetstream {} in its configuration"}
	case errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return nil, &shortcoming{"JetStream is off for this program's account on " + where, "enable it in the account's jetstream limits"}
	case err != nil:
		return nil, fmt.Errorf("bus: JetStream on %s does not answer: %w: has its cluster a leader, and may this program's user publish to $JS.API.> and subscribe to its inbox?", where, err)
	}
	return info, nil
}

func (b *Bus) checkLevel(info *jetstream.AccountInfo) *shortcoming {
	if info.API.Level >= apiLevel {
		return nil
	}
	return &shortcoming{
		fmt.Sprintf("%s is nats-server %s with JetStream API level %d, too old for message schedules", b.cfg.where(), b.nc.ConnectedServerVersion(), info.API.Level),
		fmt.Sprintf("use nats-server %s or newer (level %d)", oldestServer, apiLevel),
	}
}

func (b *Bus) checkPayload() *shortcoming {
	have := b.nc.MaxPayload()
	if have >= minPayload {
		return nil
	}
	return &shortcoming{
		fmt.Sprintf("max_payload of %s is %d bytes, at least %d are needed", b.cfg.where(), have, minPayload),
		"set max_payload: 8MB in the server's configuration",
	}
}

// comingUp reports whether the error is one of a NATS cluster that has not elected its leader yet or still lacks servers.
func comingUp(err error) bool {
	c := code(err)
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errLost) || c == codeNoLeader || c == codeNoPeers
}

// explain adds the remedy to a server's error about a stream that it did not create.
func explain(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, nats.ErrNoResponders) {
		return fmt.Errorf("%w: has the stream a leader, has the server run out of disk (then it turns JetStream off, and must be restarted), and may this program's user publish to $JS.API.STREAM.> and subscribe to its inbox?", err)
	}
	if strings.Contains(err.Error(), "error creating store") || strings.Contains(err.Error(), "no space left on device") {
		return fmt.Errorf("%w: the server cannot write to its disk: make room there", err)
	}
	switch code(err) {
	case codeInsufficientStorage, codeNoResources:
		return fmt.Errorf("%w: give JetStream more storage (max_file_store), or this bus fewer bytes", err)
	case codeReplicasUnsupported, codeNoPeers:
		return fmt.Errorf("%w: ask for one replica, or add servers to the NATS cluster", err)
	case codeSubjectsOverlap:
		return fmt.Errorf("%w: another stream listens to jobstream's subjects: narrow or delete it", err)
	}
	return err
}

// code returns the error code of the JetStream API; 0 if the error is not the server's.
func code(err error) jetstream.ErrorCode {
	var js jetstream.JetStreamError
	if !errors.As(err, &js) || js.APIError() == nil {
		return 0
	}
	return js.APIError().ErrorCode
}

// Codes of JetStream's API (nats-server, server/errors.json).
const (
	codeNoLeader            jetstream.ErrorCode = 10008
	codeAccountFull         jetstream.ErrorCode = 10002
	codeNoPeers             jetstream.ErrorCode = 10005
	codeNoResources         jetstream.ErrorCode = 10023
	codeInsufficientStorage jetstream.ErrorCode = 10047
	codeSubjectsOverlap     jetstream.ErrorCode = 10065
	codeReplicasUnsupported jetstream.ErrorCode = 10074
	codeStoreFailed         jetstream.ErrorCode = 10077
)
