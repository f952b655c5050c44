package store

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// The functions here work relative to an open directory and never follow a
// link in the last component, the only one that they take.

const openDirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// ignoringEINTR is what package os does: a signal may interrupt calls on some
// network file systems.
func ignoringEINTR(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

func openAt(dir *os.File, name string, flags int, mode uint32) (*os.File, error) {
	var fd int
	err := ignoringEINTR(func() (err error) {
		fd, err = unix.Openat(int(dir.Fd()), name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
		return err
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir.Name() + "/" + name, Err: err}
	}
	return os.NewFile(uintptr(fd), dir.Name()+"/"+name), nil
}

// enter opens the directory name in dir.
func enter(dir *os.File, name string) (*os.File, error) {
	return openAt(dir, name, openDirFlags, 0)
}

// enterOrMake opens the directory name in dir, made if it isn't there. What is there but
// is no directory is removed if clear is set, else moved aside.
func enterOrMake(dir *os.File, name string, clear bool) (*os.File, error) {
	for attempt := 0; ; attempt++ {
		d, err := enter(dir, name)
		if err == nil {
			return d, own(d)
		}
		if attempt == 3 { // somebody undoes it
			return nil, err
		}
		switch {
		case errors.Is(err, unix.ENOENT):
			err := ignoringEINTR(func() error { return unix.Mkdirat(int(dir.Fd()), name, 0o755) })
			if err != nil && err != unix.EEXIST {
				return nil, &os.PathError{Op: "mkdir", Path: dir.Name() + "/" + name, Err: err}
			}
		case !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.ELOOP):
			return nil, err
		case clear:
			if err := remove(dir, name); err != nil {
				return nil, err
			}
		default:
			if _, err := MoveAside(dir, name); err != nil {
				return nil, err
			}
		}
	}
}

// MoveAside renames what lies at name in dir, a link itself and never what it leads to, to
// NAME.aside-RANDOM beside it, and returns that name. For what is in the way of a
// directory of the agent's: it may be dear to whoever put it there.
func MoveAside(dir *os.File, name string) (string, error) {
	aside := name + ".aside-" + scratchName()[len(scratchPrefix):][:8]
	return aside, rename(dir, name, dir, aside)
}

// own gives a directory the mode that lets cells read and not write, whatever the
// umask, and takes it over from a user who made it before the agent did.
func own(d *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(d.Fd()), &st); err != nil {
		return &os.PathError{Op: "stat", Path: d.Name(), Err: err}
	}
	if euid := os.Geteuid(); euid == 0 && st.Uid != 0 {
		if err := d.Chown(0, 0); err != nil {
			return err
		}
	} else if int(st.Uid) != euid {
		return nil // another's; making files in it will tell whether it will do
	}
	if st.Mode&0o7777 != 0o755 {
		return d.Chmod(0o755)
	}
	return nil
}

// remove takes away the name in dir if it is no directory.
func remove(dir *os.File, name string) error {
	err := ignoringEINTR(func() error { return unix.Unlinkat(int(dir.Fd()), name, 0) })
	if err != nil && err != unix.ENOENT {
		return &os.PathError{Op: "remove", Path: dir.Name() + "/" + name, Err: err}
	}
	return nil
}

func rename(from *os.File, name string, to *os.File, newName string) error {
	err := ignoringEINTR(func() error { return unix.Renameat(int(from.Fd()), name, int(to.Fd()), newName) })
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from.Name() + "/" + name, New: to.Name() + "/" + newName, Err: err}
	}
	return nil
}

// maxDepth bounds the directories within each other that removeTree goes into,
// and with it the descriptors that it holds.
const maxDepth = 100

// removeTree takes away the name in dir with all that lies below it.
func removeTree(dir *os.File, name string) error { return removeBelow(dir, name, maxDepth) }

func removeBelow(dir *os.File, name string, depth int) error {
	err := remove(dir, name)
	if err == nil {
		return nil
	}
	d, notDir := enter(dir, name)
	if notDir != nil {
		return err
	}
	defer d.Close()
	if depth == 0 {
		return &os.PathError{Op: "remove", Path: d.Name(), Err: errors.New("too many directories within each other")}
	}
	for {
		removed, failed := 0, error(nil)
		if _, err := d.Seek(0, io.SeekStart); err != nil {
			return err
		}
		for {
			names, err := d.Readdirnames(256)
			for _, n := range names {
				if err := removeBelow(d, n, depth-1); err != nil {
					failed = err
				} else {
					removed++
				}
			}
			if err != nil {
				break
			}
		}
		err := ignoringEINTR(func() error { return unix.Unlinkat(int(dir.Fd()), name, unix.AT_REMOVEDIR) })
		if err == nil || err == unix.ENOENT {
			return nil
		}
		if removed == 0 { // else names may have been missed, or been added meanwhile
			if failed == nil {
				failed = &os.PathError{Op: "remove", Path: d.Name(), Err: err}
			}
			return failed
		}
	}
}

// scratchPrefix begins the names of what is only there for a moment; Open removes
// what was left of it.
const scratchPrefix = ".tmp-"

func scratchName() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return scratchPrefix + hex.EncodeToString(b[:])
}

func isScratch(name string) bool { return strings.HasPrefix(name, scratchPrefix) }
