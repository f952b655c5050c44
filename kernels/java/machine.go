package java

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/shlex"
	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/internal/environ"
	"github.com/cellard/cellard/kernels/output"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// quitWithin is how long the machine has for its shutdown hooks.
const quitWithin = 3 * time.Second

// machine is a virtual machine that runs the Java side.
type machine struct {
	cmd      *exec.Cmd
	thread   *thread
	reaper   *output.Reaper
	streams  *output.Streams
	in       *bufio.Reader // frames from Java
	inFile   *os.File
	arrivals arrivals
	outMu    sync.Mutex
	out      *os.File
	quit     time.Duration // how long it has for its end
	private  string        // a directory of its own for the jars, "" where they lie in the cache

	listener net.Listener // for the debugger's interface; nil where there is no loopback
	connect  sync.WaitGroup
	debug    *debugger // after connect; nil where there is none

	dead chan struct{} // closed when the process has been waited for
}

// startMachine starts one; close ends it.
func startMachine(o *Options) (_ *machine, err error) {
	m := &machine{reaper: o.Reaper, dead: make(chan struct{}), quit: quitWithin}
	if o.dump != "" {
		m.quit = time.Minute // the archive is written then
	}
	dir, jar, err := m.jars(o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil && m.private != "" {
			os.RemoveAll(m.private)
		}
	}()
	toJava, out, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("java: %w", err)
	}
	defer toJava.Close()
	in, fromJava, err := os.Pipe()
	if err != nil {
		out.Close()
		return nil, fmt.Errorf("java: %w", err)
	}
	defer fromJava.Close()
	streams, stdout, stderr, err := output.NewStreams()
	if err != nil {
		out.Close()
		in.Close()
		return nil, fmt.Errorf("java: %w", err)
	}
	defer stdout.Close()
	defer stderr.Close()
	m.out, m.inFile, m.streams = out, in, streams
	m.arrivals.r = in
	m.in = bufio.NewReaderSize(&m.arrivals, 64<<10)

	args, err := arguments(o, archive(dir, o.Java))
	if err == nil {
		if o.dump == "" {
			args = m.listen(args)
		}
		args = append(args, "-jar", jar, "/proc/self/fd/3", "/proc/self/fd/4")
		m.cmd = exec.Command(o.Java.Executable, args...)
		m.cmd.Env = environment(o.Env)
		m.cmd.Stdout, m.cmd.Stderr = stdout, stderr
		m.cmd.ExtraFiles = []*os.File{toJava, fromJava}
		m.thread = newThread()
		if err = m.thread.start(m.cmd, m.reaper.Start); err != nil {
			m.thread.close()
		}
	}
	if err != nil {
		m.dropDebugger()
		out.Close()
		in.Close()
		streams.Close()
		return nil, fmt.Errorf("java: %w", err)
	}
	_ = unix.Prlimit(m.pid(), unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
	go func() {
		_ = m.reaper.Wait(m.cmd) // its ProcessState says how it ended
		close(m.dead)
	}()
	return m, nil
}

// jars sees to it that the jars lie in a directory: that of Options, or of a Prepare by
// root, or this user's; else in one that is removed at the end.
func (m *machine) jars(o *Options) (dir, jar string, err error) {
	dirs := []string{o.Cache}
	if o.Cache == "" {
		dirs = []string{sharedCache(), CacheDir(o.Env)}
		if archive(dirs[0], o.Java) == "" {
			dirs = dirs[1:]
		}
	}
	for _, dir := range dirs {
		if dir == "" || os.MkdirAll(dir, 0o700) != nil || !ours(dir) {
			continue
		}
		if jar, err := writeJars(dir); err == nil {
			return dir, jar, nil
		}
	}
	if m.private, err = os.MkdirTemp(o.Temp, "cellard-java-"); err != nil {
		return "", "", fmt.Errorf("java: %w", err)
	}
	if jar, err = writeJars(m.private); err != nil {
		os.RemoveAll(m.private)
		return "", "", err
	}
	return m.private, jar, nil
}

// arguments are the options of the virtual machine.
func arguments(o *Options, archive string) ([]string, error) {
	args := []string{
		// Small at rest: one thread that collects, one compiler, and a heap that begins
		// small. Half of the memory (of the cgroup, where there is one) is the heap's at most.
		"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xms16m", "-XX:MaxRAMPercentage=50",
		// No files left behind, and none in a user's directory: /tmp/hsperfdata, hs_err_pid.log,
		// of whose text the first part comes on stderr too, replay_pid.log of the compiler. (That core dumps are off is
		// done by a limit: by a flag, a crash would end in an exit code.)
		"-XX:-UsePerfData", "-XX:ErrorFile=/dev/null", "-XX:-DumpReplayDataOnError", "-XX:+DisplayVMOutputToStderr",
		"-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr",
		"-Dfile.encoding=UTF-8", "-Djava.awt.headless=true",
		// System.console() is null, as it has always been where there is no terminal.
		"-Djdk.console=java.base",
		"-Djdk.trackAllThreads=true",
	}
	if o.dump != "" {
		args = append(args, "-XX:ArchiveClassesAtExit="+o.dump)
	} else if archive != "" {
		args = append(args, "-XX:SharedArchiveFile="+archive)
	}
	more, err := shlex.Split(environ.Get(o.Env, "CELLARD_JAVA_OPTIONS"))
	if err != nil {
		return nil, fmt.Errorf("CELLARD_JAVA_OPTIONS: %w", err)
	}
	return append(args, more...), nil
}

// environment makes sure that the machine reads the names of files as UTF-8.
func environment(env []string) []string {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := environ.Get(env, name); value != "" {
			value = strings.ToLower(strings.ReplaceAll(value, "-", ""))
			if strings.HasSuffix(value, ".utf8") {
				return env
			}
			break
		}
	}
	return append(append([]string(nil), env...), "LC_ALL=C.UTF-8")
}

// listen has the machine connect its debugger's interface to a port here, which takes
// one connection and is closed then: a port of the machine's own would be open to
// whoever is in the sandbox. Without a loopback interface there is none.
func (m *machine) listen(args []string) []string {
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return args
	}
	_ = listener.SetDeadline(time.Now().Add(startWithin))
	m.listener = listener
	m.connect.Add(1)
	go func() {
		defer m.connect.Done()
		defer listener.Close()
		if conn, err := listener.Accept(); err == nil {
			m.debug, _ = newDebugger(conn)
		}
	}()
	return append(args, "-agentlib:jdwp=transport=dt_socket,server=n,suspend=n,address="+listener.Addr().String())
}

// debugger is the connection to the debugger's interface; nil where there is none.
func (m *machine) debugger() *debugger {
	m.connect.Wait()
	return m.debug
}

func (m *machine) dropDebugger() {
	if m.listener != nil {
		m.listener.Close()
	}
	if d := m.debugger(); d != nil {
		d.close()
	}
}

// send sends a frame to Java.
func (m *machine) send(b *builder) error {
	data, err := b.done()
	if err != nil {
		return err
	}
	m.outMu.Lock()
	defer m.outMu.Unlock()
	_, err = m.out.Write(data)
	return err
}

// pid is the process's.
func (m *machine) pid() int { return m.cmd.Process.Pid }

// close asks the machine to end, kills it when it doesn't, and waits. The reading of
// frames has ended, or ends by it.
func (m *machine) close() {
	m.outMu.Lock()
	m.out.Close()
	m.outMu.Unlock()
	select {
	case <-m.dead:
	case <-time.After(m.quit):
		_ = m.cmd.Process.Kill()
		<-m.dead
	}
	m.dropDebugger()
	m.thread.close()
	m.streams.Close()
	if m.private != "" {
		os.RemoveAll(m.private)
	}
}

// ours tells whether nobody else can write into a directory: what lies in it is run.
func ours(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return false
	}
	return owned(info)
}

var errGone = errors.New("java: the virtual machine has ended")

// gone is the error that tells how the machine has ended.
func (m *machine) gone() error {
	<-m.dead
	if m.cmd.ProcessState == nil {
		return errGone
	}
	return &kernel.DiedError{What: "java", State: m.cmd.ProcessState}
}

// archive is the archive of classes that was made for a Java and for this kernel.jar;
// "" where there is none.
func archive(dir string, j *Java) string {
	path := filepath.Join(dir, archiveName(j))
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || !owned(info) {
		return ""
	}
	return path
}
