package supervisor

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/internal/environ"
	"github.com/cellard/cellard/store"
)

// account is whom the kernels run as.
type account struct {
	name, home string
	uid        int
	credential *syscall.Credential // nil: as the agent itself
}

// DefaultUser is the account that kernels run as when the agent is root and no
// other was named: this one if it exists, else nobody.
const DefaultUser = "cellard"

// findAccount resolves Options.User. Only root can run kernels as another; with an
// empty name it does, as DefaultUser or nobody.
func findAccount(name string) (*account, error) {
	me := os.Getuid()
	if name == "" && me == 0 {
		name = DefaultUser
		if _, err := user.Lookup(name); err != nil {
			name = "nobody"
		}
	}
	if name == "" || name == strconv.Itoa(me) {
		return &account{uid: me}, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		if u, err = user.LookupId(name); err != nil {
			return nil, fmt.Errorf("user %q: no such account; name one of /etc/passwd's", name)
		}
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("user %q: %w", name, err)
	}
	if uid == me {
		return &account{uid: me}, nil
	}
	if me != 0 {
		return nil, fmt.Errorf("user %q: only an agent that runs as root can run cells as another user; leave the user out, or start the agent as root", name)
	}
	a := &account{name: u.Username, home: u.HomeDir, uid: uid,
		credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	ids, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("user %q: its groups: %w", name, err)
	}
	for _, id := range ids {
		if n, err := strconv.ParseUint(id, 10, 32); err == nil {
			a.credential.Groups = append(a.credential.Groups, uint32(n))
		}
	}
	return a, nil
}

// settle gives an account without a home (nobody) one, or nothing could be installed.
func (a *account) settle(spareHome string) error {
	if a.credential == nil {
		return nil
	}
	if fi, err := os.Stat(a.home); err != nil || !fi.IsDir() {
		a.home = spareHome
		if err := a.makeHome(); err != nil {
			return fmt.Errorf("user %q: its home: %w", a.name, err)
		}
	}
	return nil
}

// enter tells whether cells can enter dir; the error names them.
func (a *account) enter(dir string) error {
	err := environ.Enter(dir, a.credential)
	if err != nil && a.credential != nil {
		return fmt.Errorf("%w (%s)", err, a.name)
	}
	return err
}

// boundary reports whether cells run as another user than the agent.
func (a *account) boundary() bool { return a.credential != nil }

// makeHome makes the account's home, of whose parent cells may own what is above. A
// link is moved aside, not followed: an earlier agent's cell may have put it there, and
// what it led to would become the cells'.
func (a *account) makeHome() error {
	parent, name := filepath.Split(a.home)
	dir, err := os.OpenFile(filepath.Clean(parent), dirFlags, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	for attempt := 0; ; attempt++ {
		if err := unix.Mkdirat(int(dir.Fd()), name, 0o700); err != nil && err != unix.EEXIST {
			return &os.PathError{Op: "mkdir", Path: a.home, Err: err}
		}
		home, err := unix.Openat(int(dir.Fd()), name, dirFlags, 0)
		switch {
		case err == nil:
			defer unix.Close(home)
			return unix.Fchown(home, int(a.credential.Uid), int(a.credential.Gid))
		case attempt == 3 || err != unix.ELOOP && err != unix.ENOTDIR:
			return &os.PathError{Op: "open", Path: a.home, Err: err}
		}
		if _, err := store.MoveAside(dir, name); err != nil {
			return err
		}
	}
}

// dirFlags open a directory that is not behind a link.
const dirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// clearWay moves aside what lies where the agent's directory has to be and is none: a
// cell of an earlier agent can have put anything into the workspace. It returns where
// that is now, empty if there was no such thing.
func clearWay(path string) (string, error) {
	fi, err := os.Lstat(path)
	if err != nil || fi.IsDir() {
		return "", nil // the making of it tells of an error
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	defer dir.Close()
	aside, err := store.MoveAside(dir, filepath.Base(path))
	return filepath.Join(filepath.Dir(path), aside), err
}

// mkdir makes a directory that is the account's alone, in one that is the agent's.
func (a *account) mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return a.own(dir)
}

func (a *account) writeFile(path string, data []byte) error {
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return err
	}
	return a.own(path)
}

func (a *account) own(path string) error {
	if a.credential == nil {
		return nil
	}
	return os.Lchown(path, int(a.credential.Uid), int(a.credential.Gid))
}

// environ is the environment of a kernel: the agent's own without what is the
// agent's alone, then the kernel's, the context's and the mark.
func (m *Manager) environ(launch []string, context map[string]string, mark string) []string {
	var env []string
	at := map[string]int{}
	set := func(v string) {
		name, _, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return
		}
		if i, ok := at[name]; ok {
			env[i] = v
			return
		}
		at[name] = len(env)
		env = append(env, v)
	}
	for _, v := range m.o.Env {
		if !agentsOwn(v) {
			set(v)
		}
	}
	if _, ok := at["PATH"]; !ok {
		set("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	}
	if !slices.ContainsFunc(env, namesLocale) && hasUTF8() {
		set("LANG=C.UTF-8") // an image's init sets none, and programs then take text for bytes
	}
	if m.user.credential != nil {
		set("HOME=" + m.user.home)
		set("USER=" + m.user.name)
		set("LOGNAME=" + m.user.name)
	}
	for _, v := range launch {
		set(v)
	}
	for k, v := range context {
		set(k + "=" + v)
	}
	set(mark)
	return env
}

// namesLocale tells the variables by which a program learns how text is encoded: locale(7).
func namesLocale(v string) bool {
	name, value, _ := strings.Cut(v, "=")
	return value != "" && (name == "LC_ALL" || name == "LC_CTYPE" || name == "LANG")
}

// hasUTF8 tells whether C.UTF-8 is a locale here: of one that is none many programs warn.
var hasUTF8 = sync.OnceValue(func() bool {
	found, _ := filepath.Glob("/usr/lib/locale/C.[uU][tT][fF]*")
	return len(found) > 0
})

// agentsOwn tells the variables that no cell may see: the agent's settings, its token
// among them, and what systemd hands to it.
func agentsOwn(v string) bool {
	for _, p := range []string{"CELLARD_", "LISTEN_FDS=", "LISTEN_PID=", "LISTEN_PIDFDID=", "LISTEN_FDNAMES=", "NOTIFY_SOCKET=",
		"WATCHDOG_USEC=", "WATCHDOG_PID=", "CREDENTIALS_DIRECTORY=", "XDG_RUNTIME_DIR="} {
		if strings.HasPrefix(v, p) && (p != "XDG_RUNTIME_DIR=" || os.Getuid() == 0) {
			return true
		}
	}
	return false
}

func signalName(s syscall.Signal) string {
	if n := unix.SignalName(s); n != "" {
		return n
	}
	return fmt.Sprintf("signal %d", int(s))
}
