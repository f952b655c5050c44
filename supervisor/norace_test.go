//go:build !race

package supervisor

const hugeBytes = 300_000_000
