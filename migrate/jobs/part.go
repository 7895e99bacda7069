package jobs

import (
	"crypto/sha256"
	"encoding/binary"
)

// Part returns part index of count parts of the lines; index counts from 1. A line falls to a part by its source alone:
// more lines move none that are there, one part more moves one line of count+1, and lines of the same source stay
// together. Parse and check the whole list first: lines of different parts must not write to the same places either.
func Part(lines []Line, index, count int) []Line {
	if count <= 1 {
		return lines
	}
	var mine []Line
	for _, l := range lines {
		sum := sha256.Sum256([]byte(l.Source))
		if bucket(binary.BigEndian.Uint64(sum[:]), count) == index-1 {
			mine = append(mine, l)
		}
	}
	return mine
}

// bucket is the jump consistent hash of Lamping and Veach (arXiv:1406.2294): a number below count.
func bucket(key uint64, count int) int {
	at, next := int64(-1), int64(0)
	for next < int64(count) {
		at = next
		key = key*2862933555777941757 + 1
		next = int64(float64(at+1) * (float64(int64(1)<<31) / float64(key>>33+1)))
	}
	return int(at)
}
