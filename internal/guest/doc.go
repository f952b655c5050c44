// Package guest has only tests: the agent in a real virtual machine, called by a host
// over vsock. scripts/setup-guest.sh makes what is booted, make guest runs the tests.
//
// The guest is QEMU with software emulation, so it runs anywhere, slowly: a time measured
// here is a bound on nothing. Its PID 1 is the program in init, which starts the agent as
// an image would, with no address to listen on, and answers the test's own questions on
// another port of vsock (control.go). vhost-device-vsock is the host's side of vsock and has
// Firecracker's way in: a Unix socket, CONNECT PORT, OK.
//
// A machine belongs to the test that booted it (machine_test.go) and ends with it. The
// parts of TestGuest share one.
package guest
