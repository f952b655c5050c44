package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/internal/environ"
	"github.com/cellard/cellard/kernels/bash"
	"github.com/cellard/cellard/kernels/golang"
	"github.com/cellard/cellard/kernels/java"
	"github.com/cellard/cellard/kernels/node"
	"github.com/cellard/cellard/kernels/r"
	"github.com/cellard/cellard/kernels/r/front"
	"github.com/cellard/cellard/protocol/jupyter"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// ownKernel is a kernel of our own.
type ownKernel struct {
	name    string // of the language, as hosts know it
	display string // its name for people
	// language is what a kernelspec calls the language, as the kernel's language_info does;
	// "": name.
	language string
	// start makes the Language. The interpreter is the program that the agent found;
	// empty: the kernel looks for one itself.
	// temp is a directory for its temporary files, empty: where such files belong.
	start func(interpreter, temp string) (kernel.Language, error)
}

// ownKernels are all kernels of our own.
func ownKernels() []ownKernel {
	return []ownKernel{
		{name: "bash", display: "Bash (cellard)", start: startBash},
		{name: node.JavaScript, display: "JavaScript (cellard)", start: startNode(node.JavaScript)},
		{name: node.TypeScript, display: "TypeScript (cellard)", start: startNode(node.TypeScript)},
		{name: "java", display: "Java (cellard)", start: startJava},
		{name: "go", display: "Go (cellard)", start: startGo},
		{name: "r", display: "R (cellard)", language: "R", start: startR},
	}
}

func startBash(interpreter, _ string) (kernel.Language, error) {
	return bash.New(bash.Options{Path: interpreter}), nil
}

func startNode(language string) func(interpreter, temp string) (kernel.Language, error) {
	return func(interpreter, _ string) (kernel.Language, error) {
		return node.New(node.Options{Language: language, Program: interpreter}), nil
	}
}

func startJava(interpreter, temp string) (kernel.Language, error) {
	if interpreter == "" {
		return java.New(java.Options{Temp: temp}), nil
	}
	j, err := java.At(interpreter)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", interpreter, err)
	}
	return java.New(java.Options{Java: j, Temp: temp}), nil
}

func startGo(interpreter, temp string) (kernel.Language, error) {
	tool, err := golang.NewFinder(golang.FinderOptions{Program: interpreter}).Find(context.Background())
	if lacks := (*golang.NotFoundError)(nil); errors.As(err, &lacks) {
		return nil, fmt.Errorf("%w: %s", err, lacks.Hint())
	}
	if err != nil {
		return nil, err
	}
	return golang.New(tool, temp)
}

// startR runs R for other clients than the agent, which starts R itself.
func startR(interpreter, temp string) (kernel.Language, error) {
	if interpreter == "" {
		found, err := r.NewFinder(environ.Search{}).Find(context.Background())
		if lacks := (*r.NotFoundError)(nil); errors.As(err, &lacks) {
			return nil, fmt.Errorf("%w: %s", err, lacks.Hint())
		}
		if err != nil {
			return nil, err
		}
		interpreter = found.Program
	}
	o := front.Options{Argv: r.Argv(interpreter), Files: r.Files(), Env: r.Env(os.Environ()), Temp: temp}
	if self, err := os.Executable(); err == nil {
		o.Keeper = []string{self, "keeper"}
	}
	return front.New(o), nil
}

const kernelHelp = `
cellard kernel NAME runs a Jupyter kernel of cellard's own, for the agent or any other
Jupyter client. cellard kernel install NAME tells Jupyter of it; the language itself is
installed by cellard languages install.

Usage: cellard kernel NAME -f CONNECTION_FILE [flags]
       cellard kernel install [--user | --prefix DIR] NAME ...

Kernels: `

// runKernel is cellard kernel.
func runKernel(args []string) int {
	names := make([]string, 0, 8)
	for _, k := range ownKernels() {
		names = append(names, k.name)
	}
	about := kernelHelp + strings.Join(names, ", ")
	if len(args) > 0 && args[0] == "install" {
		return installKernel(args[1:], about)
	}
	name := ""
	fs := newFlags("kernel")
	file := fs.String("f", "", "the connection `FILE`")
	interpreter := fs.String("interpreter", "", "the `PROGRAM` that runs the language (default: found on the PATH)")
	code, ok := parseAlone(fs, args, about, func(arg string) error {
		if name != "" {
			return fmt.Errorf("unexpected argument %q", arg)
		}
		name = arg
		return nil
	})
	if !ok {
		return code
	}
	i := slices.IndexFunc(ownKernels(), func(k ownKernel) bool { return k.name == name })
	if i < 0 || *file == "" {
		fmt.Fprintf(os.Stderr, "cellard kernel: want NAME -f CONNECTION_FILE, with NAME one of %s\n", strings.Join(names, ", "))
		return 2
	}
	return serveKernel(ownKernels()[i], *file, *interpreter)
}

// serveKernel serves a kernel until it is asked to end, or its interpreter has ended:
// then it ends in the same way.
func serveKernel(k ownKernel, file, interpreter string) int {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50) // memory is dearer than the collector's time in a sandbox
	}
	// The agent executes it by a descriptor, whose number it would be called in ps.
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&append([]byte("cellard"), 0)[0])), 0, 0, 0)
	// Before anything else: the ways to stop it, and the clients that wait.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go watchParent(ctx, cancel)

	info, err := jupyter.ReadConnectionFile(file)
	if err == nil {
		var language kernel.Language
		if language, err = k.start(interpreter, environ.TakeTemp()); err == nil {
			log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
			err = kernel.Serve(ctx, info, language, kernel.Options{Signals: signals, Logger: log})
		}
	}
	if err == nil {
		return 0
	}
	fmt.Fprintf(os.Stderr, "cellard kernel %s: %v\n", k.name, err)
	if died := (*kernel.DiedError)(nil); errors.As(err, &died) {
		return endAs(died)
	}
	return 1
}

// watchParent ends the kernel when the client that started it, which JPY_PARENT_PID
// names, has gone, as ipykernel does. The agent's kernels end with it in another way.
func watchParent(ctx context.Context, cancel context.CancelCauseFunc) {
	parent, err := strconv.Atoi(os.Getenv("JPY_PARENT_PID"))
	if err != nil || parent <= 1 || parent != os.Getppid() {
		return
	}
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			if os.Getppid() != parent {
				cancel(errors.New("the parent process has gone"))
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// endAs ends this process as another has ended: by the same signal, or by returning the
// same exit code.
func endAs(died *kernel.DiedError) int {
	sig := died.Signal()
	if sig == 0 {
		if code := died.ExitCode(); code > 0 {
			return code
		}
		return 1 // it was not asked to end, whatever it says
	}
	// The runtime handles most signals: the default is set behind its back, and no core
	// of this process is left.
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	var ignored [4]uint64 // struct sigaction: SIG_DFL, no flags, no mask
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&ignored)), 0, 8, 0, 0)
	_ = unix.Kill(os.Getpid(), sig)
	time.Sleep(time.Second)
	return 128 + int(sig)
}
