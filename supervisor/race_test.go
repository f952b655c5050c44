//go:build race

package supervisor

// hugeBytes is less with the race detector, which takes ten times as long.
const hugeBytes = 50_000_000
