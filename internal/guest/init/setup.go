package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// agentPath is where the agent lies in the guest's root.
const agentPath = "/usr/local/bin/cellard"

// newRoot is where the disk is mounted until it is the root.
const newRoot = "/disk"

// setUp loads the modules of the initramfs, makes the disk the root and mounts what
// an image has there.
func setUp() error {
	for _, m := range []mount{{"devtmpfs", "/dev"}, {"proc", "/proc"}} {
		if err := m.do(""); err != nil {
			return err
		}
	}
	modules, _ := filepath.Glob("/modules/*.ko") // sorted: the order to load them in
	for _, path := range modules {
		if err := load(path); err != nil {
			return err
		}
	}
	if err := os.Mkdir(newRoot, 0o755); err != nil {
		return err
	}
	var err error
	for range 100 { // the disk is found a moment after its driver
		if err = unix.Mount("/dev/vda", newRoot, "ext4", 0, ""); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("mounting the disk: %w", err)
	}
	agent, err := os.ReadFile("/cellard")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(newRoot+agentPath), 0o755)
	}
	if err == nil {
		err = os.WriteFile(newRoot+agentPath, agent, 0o755)
	}
	if err == nil {
		err = os.Remove("/cellard") // it is memory here
	}
	if err != nil {
		return err
	}
	for _, m := range []mount{
		{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"devpts", "/dev/pts"},
		{"tmpfs", "/dev/shm"}, {"tmpfs", "/run"}, {"tmpfs", "/tmp"}, {"cgroup2", "/sys/fs/cgroup"},
	} {
		if err := m.do(newRoot); err != nil {
			return err
		}
	}
	for _, dir := range []string{newRoot + "/tmp", newRoot + "/dev/shm"} {
		if err := os.Chmod(dir, 0o1777); err != nil {
			return err
		}
	}
	if err := os.Chmod(newRoot+"/run", 0o755); err != nil {
		return err
	}
	if err := os.Chdir(newRoot); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("moving the root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("chroot: %w", err)
	}
	return upLoopback()
}

type mount struct{ kind, dir string }

func (m mount) do(root string) error {
	if err := os.MkdirAll(root+m.dir, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(m.kind, root+m.dir, m.kind, 0, ""); err != nil {
		return fmt.Errorf("mounting %s: %w", m.dir, err)
	}
	return nil
}

func load(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil {
		return fmt.Errorf("loading %s: %w", filepath.Base(path), err)
	}
	return nil
}

// upLoopback brings 127.0.0.1 up.
func upLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
}
