//go:build !amd64

package bash

// sysSelect is none: newer architectures have pselect6 alone.
const sysSelect = -1
