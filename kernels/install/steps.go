package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cellard/cellard/internal/environ"
	"github.com/cellard/cellard/internal/logging"
)

// aptOptions make apt wait for another that runs, give up on a dead network, and ask
// nothing.
var aptOptions = []string{"-q", "-o", "DPkg::Lock::Timeout=600", "-o", "Dpkg::Use-Pty=0",
	"-o", "Acquire::Retries=2", "-o", "Acquire::http::Timeout=30", "-o", "Acquire::https::Timeout=30"}

var aptEnv = []string{"DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8"}

// install does all of it, when its turn has come.
func (i *Installer) install(ctx context.Context, language string, recipe *Recipe, j *job) error {
	select {
	case i.turn <- struct{}{}:
		defer func() { <-i.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	lock, err := i.lock(ctx, j)
	if err != nil {
		return err
	}
	defer lock.Close()
	i.o.Logger.Info("installing a language", "language", language)
	run := func(env []string, argv ...string) error {
		return i.run(ctx, argv, env, func(line string) {
			i.o.Logger.Debug("installing", "language", language, "line", logging.Content(line))
			j.line(line)
		})
	}
	apt := func(args ...string) error {
		return run(aptEnv, append(append([]string{"apt-get"}, aptOptions...), args...)...)
	}
	j.step(fmt.Sprintf("installing %s: asking the archive which packages there are", language))
	// A failure here is one only if what is known does not do.
	stale := apt("update")
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	versions, err := i.candidates(ctx, recipe.names())
	if err != nil {
		return err
	}
	way, err := recipe.choose(versions)
	if err != nil {
		return errors.Join(err, stale)
	}
	j.step(fmt.Sprintf("installing %s: %s", language, way.What()))
	args := []string{"install", "-y", "--no-install-recommends"}
	for _, p := range way.Packages {
		args = append(args, p.Name)
	}
	if err := apt(args...); err != nil {
		return err
	}
	if way.Wheel != nil {
		return i.wheel(ctx, way.Wheel, run)
	}
	return nil
}

// wheel installs a wheel into a directory of its own, and links its programs.
func (i *Installer) wheel(ctx context.Context, w *Wheel, run func(env []string, argv ...string) error) error {
	dir := filepath.Join(i.o.Prefix, w.Dir)
	for name := range w.Links {
		if err := i.free(filepath.Join(i.o.Bin, name)); err != nil {
			return err
		}
	}
	if _, err := os.Stat(dir); err != nil {
		half := dir + ".new"
		if err := os.RemoveAll(half); err != nil {
			return err
		}
		if err := os.MkdirAll(i.o.Prefix, 0o755); err != nil {
			return err
		}
		err := run([]string{"PIP_ROOT_USER_ACTION=ignore"}, "python3", "-I", "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--no-cache-dir",
			"--progress-bar", "off", "--only-binary", ":all:", "--no-deps", "--target", half, w.Requirement)
		if err == nil {
			err = os.Rename(half, dir)
		}
		if err != nil {
			_ = os.RemoveAll(half)
			return err
		}
	}
	for name, file := range w.Links {
		link := filepath.Join(i.o.Bin, name)
		if err := os.MkdirAll(i.o.Bin, 0o755); err != nil {
			return err
		}
		_ = os.Remove(link + ".new")
		if err := os.Symlink(filepath.Join(dir, file), link+".new"); err != nil {
			return err
		}
		if err := os.Rename(link+".new", link); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// free reports whether a link of ours may be put there: nothing is, or one of ours.
func (i *Installer) free(link string) error {
	target, err := os.Readlink(link)
	if errors.Is(err, os.ErrNotExist) || err == nil && filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(target)))) == i.o.Prefix {
		return nil
	}
	return fmt.Errorf("%s is somebody else's, and too old: remove it, or put a newer one before it into the PATH", link)
}

// lock waits until no other process installs.
func (i *Installer) lock(ctx context.Context, j *job) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(i.o.Lock), 0o755); err != nil {
		return nil, err
	}
	return environ.LockFile(ctx, i.o.Lock, func() { j.step("waiting for another install on this machine") })
}
