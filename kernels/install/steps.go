package install

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
	var stale error
	var versions map[string]string
	if i.noApt() == "" { // else a way that takes none was found
		j.step(fmt.Sprintf("installing %s: asking the archive which packages there are", language))
		// A failure here is one only if what is known does not do.
		stale = apt("update")
		versions, err = i.candidates(ctx, recipe.names())
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		stale = errors.Join(err, stale)
	}
	way, err := i.choose(recipe, versions)
	if err != nil {
		return errors.Join(err, stale)
	}
	j.step(fmt.Sprintf("installing %s: %s", language, way.What()))
	if len(way.Packages) > 0 {
		args := []string{"install", "-y", "--no-install-recommends"}
		for _, p := range way.Packages {
			args = append(args, p.Name)
		}
		if err := apt(args...); err != nil {
			return err
		}
	}
	if way.Program != nil {
		return i.program(ctx, way.Program, j, run)
	}
	return nil
}

// program fetches a program into a directory of its own, and links what is in it.
func (i *Installer) program(ctx context.Context, p *Program, j *job, run func(env []string, argv ...string) error) error {
	dir := filepath.Join(i.o.Prefix, p.Dir)
	links, err := i.free(p, j)
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); err != nil {
		if err := os.MkdirAll(i.o.Prefix, 0o755); err != nil {
			return err
		}
		half := dir + ".new"
		if err := os.RemoveAll(half); err != nil {
			return err
		}
		err := fetch(p, half, run)
		if err == nil {
			err = os.Rename(half, dir)
		}
		if err != nil {
			_ = os.RemoveAll(half)
			return err
		}
	}
	if err := os.MkdirAll(i.o.Bin, 0o755); err != nil {
		return err
	}
	for _, name := range links {
		link := filepath.Join(i.o.Bin, name)
		_ = os.Remove(link + ".new")
		if err := os.Symlink(filepath.Join(dir, p.Links[name]), link+".new"); err != nil {
			return err
		}
		if err := os.Rename(link+".new", link); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// fetch puts a program into dir, and sees that it runs here: a registry may have it for
// another libc only.
func fetch(p *Program, dir string, run func(env []string, argv ...string) error) error {
	argv, env := p.By.install(p.Package, dir)
	if err := run(env, argv...); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(dir, cacheDir)); err != nil {
		return err
	}
	files := slices.Sorted(maps.Values(p.Links))
	for _, file := range slices.Compact(files) {
		if err := run(nil, filepath.Join(dir, file), "--version"); err != nil {
			return fmt.Errorf("what %s fetched, %s, does not run here: %w", p.By, p.Package, err)
		}
	}
	return nil
}

// free are the names that links of ours may have: nothing goes by them, or one of ours.
func (i *Installer) free(p *Program, j *job) (names []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(p.Links)) {
		link := filepath.Join(i.o.Bin, name)
		target, err := os.Readlink(link)
		if errors.Is(err, os.ErrNotExist) || err == nil && strings.HasPrefix(target, i.o.Prefix+"/") {
			names = append(names, name)
		} else {
			j.step(link + " is somebody else's, and stays as it is")
		}
	}
	if names == nil {
		return nil, fmt.Errorf("%s has somebody else's programs by each name that what is installed would get: remove them, or put a newer one before them into the PATH", i.o.Bin)
	}
	return names, nil
}

// lock waits until no other process installs.
func (i *Installer) lock(ctx context.Context, j *job) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(i.o.Lock), 0o755); err != nil {
		return nil, err
	}
	return environ.LockFile(ctx, i.o.Lock, func() { j.step("waiting for another install on this machine") })
}
