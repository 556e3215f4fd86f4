// Package draw draws random Jobs, statuses and Pods such as an API server may show, for properties and fuzzing.
//
//	job.go     a Job that the API server lets a user create, and edits that it allows
//	status.go  any status that it would store for such a Job, likely and unlikely ones
//	pods.go    Pods of the Job in any state, some of which its status knows
package draw

import (
	"time"

	"pgregory.net/rapid"
)

// Now is the time at which drawn objects are examined. Every drawn time is a multiple of five seconds away from Epoch and Now
// lies between two of them: no delay of jobstream or of Kubernetes ends within two seconds of it.
var (
	Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	Now   = Epoch.Add(20*time.Minute + 2500*time.Millisecond)
)

// moment draws a time before Now, most likely shortly before.
func moment(t *rapid.T, label string) time.Time {
	steps := rapid.OneOf(rapid.IntRange(0, 6), rapid.IntRange(0, 200)).Draw(t, label+" steps ago")
	return Epoch.Add(20*time.Minute - time.Duration(steps)*5*time.Second)
}

// Dice draws a number below n, all equally likely: rapid's own numbers are small most of the time.
func Dice(t *rapid.T, n int, label string) int {
	return int(dice.Draw(t, label)) % n
}

// dice consists of single bits, which rapid draws evenly.
var dice = rapid.Custom(func(t *rapid.T) (out uint16) {
	for range 10 {
		out <<= 1
		if coin.Draw(t, "") {
			out++
		}
	}
	return out
})

var coin = rapid.Bool()

// chance is true about once in n.
func chance(t *rapid.T, n int, label string) bool { return Dice(t, n, label) == n-1 }

// maybe is nil about every other time.
func maybe(t *rapid.T, low, high int, label string) *int32 {
	if rapid.Bool().Draw(t, "no "+label) {
		return nil
	}
	return new(int32(rapid.IntRange(low, high).Draw(t, label)))
}

func number(t *rapid.T, low, high int, label string) int32 {
	return int32(rapid.IntRange(low, high).Draw(t, label))
}
