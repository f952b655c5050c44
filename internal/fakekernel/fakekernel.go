package fakekernel

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Env is the environment variable that turns a test binary into the kernel. Its
// value is a Start, or "".
const Env = "CELLARD_FAKE"

// What Env says of the kernel's start.
const (
	StartWell              = ""
	StartSilentHandshake   = "silent-handshake"     // connections are taken and nothing is ever sent
	StartGarbageGreeting   = "garbage-greeting"     // what is sent isn't ZMTP
	StartWrongSocketType   = "wrong-socket-type"    // every socket says that it is a PUSH
	StartNoKernelInfoReply = "no-kernel-info-reply" // kernel_info_request gets busy and idle but no reply
	StartNoIOPub           = "no-iopub"             // iopub connects and carries nothing
	StartDieAtStart        = "die-at-start"         // a text on stderr, exit status 3, nothing was bound
	StartDieAfterHandshake = "die-after-handshake"  // SIGKILL once a client has shaken hands on shell
	StartSlow              = "slow-start"           // followed by milliseconds: nothing is bound until then
	StartWelcome           = "welcome"              // iopub_welcome, which has no parent, for each subscription
	StartVariables         = "variables"            // variables_request is answered with what a cell has set as "answer"; hang waits for SIGINT
)

// Wanted tells whether this process is to be the kernel.
func Wanted() bool {
	_, ok := os.LookupEnv(Env)
	return ok
}

// Main is the kernel. It does not return.
func Main() {
	err := run(os.Args[1:], os.Getenv(Env)) // ends otherwise only with the process
	fmt.Fprintln(os.Stderr, "fakekernel:", err)
	os.Exit(2)
}

type connectionFile struct {
	Transport string `json:"transport"`
	IP        string `json:"ip"`
	Shell     int    `json:"shell_port"`
	IOPub     int    `json:"iopub_port"`
	Stdin     int    `json:"stdin_port"`
	Control   int    `json:"control_port"`
	Heartbeat int    `json:"hb_port"`
	Key       string `json:"key"`
	Scheme    string `json:"signature_scheme"`
}

func (f connectionFile) address(port int) (network, address string) {
	if f.Transport == "ipc" {
		return "unix", f.IP + "-" + strconv.Itoa(port)
	}
	return "tcp", f.IP + ":" + strconv.Itoa(port)
}

func run(args []string, script string) error {
	flags := flag.NewFlagSet("fakekernel", flag.ContinueOnError)
	file := flags.String("f", "", "connection file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	text, err := os.ReadFile(*file)
	if err != nil {
		return err
	}
	var info connectionFile
	if err := json.Unmarshal(text, &info); err != nil {
		return fmt.Errorf("connection file: %w", err)
	}
	if info.Scheme != "hmac-sha256" || info.Transport != "ipc" && info.Transport != "tcp" {
		return fmt.Errorf("connection file: scheme %q and transport %q are not known", info.Scheme, info.Transport)
	}

	start, delay, _ := strings.Cut(script, " ")
	switch start {
	case StartDieAtStart:
		fmt.Fprintln(os.Stderr, "ImportError: no module named fake")
		os.Exit(3)
	case StartSlow:
		ms, err := strconv.Atoi(delay)
		if err != nil {
			return fmt.Errorf("%s: %w", script, err)
		}
		time.Sleep(time.Duration(ms) * time.Millisecond)
	case StartWell, StartSilentHandshake, StartGarbageGreeting, StartWrongSocketType, StartNoKernelInfoReply,
		StartNoIOPub, StartDieAfterHandshake, StartWelcome, StartVariables:
	default:
		return fmt.Errorf("%s=%q is not a start that is known", Env, script)
	}

	go endWithParent()
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	return newKernel(info, start).serve(interrupts)
}

// endWithParent ends the kernel of a test that was killed.
func endWithParent() {
	for parent := os.Getppid(); os.Getppid() == parent; {
		time.Sleep(time.Second)
	}
	os.Exit(0)
}

// die ends the process as a crash does: nothing is flushed, nothing is closed.
func die() {
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// socketType is what a channel's socket says that it is.
func socketType(start, typ string) string {
	if start == StartWrongSocketType {
		return "PUSH"
	}
	return typ
}

// handshakes tells whether a socket answers to a client at all.
func handshakes(start string) bool {
	return !slices.Contains([]string{StartSilentHandshake, StartGarbageGreeting}, start)
}
