package events

import "time"

// NominalHash is the hash of a nominal time by which the Job of that time is named, and by which its due notice and its verdict are known
// (proposal scheduledjob.md, "Name of Jobs"). It is injective, so that no two times share a name: the first controller
// hashed to 32 bits with Adler's sum, and swallowed runs. Ten characters at most, of the alphabet of Kubernetes' own
// random suffixes: no vowels, so no words.
//
//	unix seconds (40 bits: until the year 36812) --four rounds that swap and mix two halves--> 40 bits --> base 27
//
// A Feistel network is a bijection whatever its rounds compute: each half is mixed with a function of the other, which is
// still known when the round is undone.
func NominalHash(t time.Time) string {
	v := uint64(t.Unix()) & (1<<nominalBits - 1) //nolint:gosec // the low bits are what is wanted
	const half = nominalBits / 2
	l, r := uint32(v>>half), uint32(v&(1<<half-1))
	for round := range uint32(4) {
		l, r = r, l^(mix(r, round)&(1<<half-1))
	}
	return Suffix(uint64(l)<<half|uint64(r), NominalHashLength)
}

const (
	nominalBits = 40
	// NominalHashLength is the length of every hash in characters: 27^9 is more than 2^40.
	NominalHashLength = 9
)

// mix scatters a half over 32 bits (the finalizer of MurmurHash3), differently in each round.
func mix(x, round uint32) uint32 {
	x += (round + 1) * 0x9e3779b9
	x ^= x >> 16
	x *= 0x85ebca6b
	x ^= x >> 13
	x *= 0xc2b2ae35
	return x ^ x>>16
}
