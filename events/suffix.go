package events

// SuffixDigits are the digits of generated names in Kubernetes (apimachinery, rand.String), from 0 to 26: no vowels, and no
// characters that are mistaken for one another, so that no suffix is a word.
const SuffixDigits = "bcdfghjklmnpqrstvwxz2456789"

// Suffix writes the last digits of n to the base of 27, which SuffixDigits spells: as many as length, which is 1 or more.
func Suffix(n uint64, length int) string {
	out := make([]byte, length)
	for i := length - 1; i >= 0; i-- {
		out[i] = SuffixDigits[n%uint64(len(SuffixDigits))]
		n /= uint64(len(SuffixDigits))
	}
	return string(out)
}
