package java

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/cellard/cellard/internal/environ"
	"github.com/cellard/cellard/protocol/jupyter/kernel"
)

// sharedCache is where root's Prepare puts what every user's kernels read.
func sharedCache() string { return "/var/cache/cellard/java-" + jarSum() }

// CacheDir is where a user's jars and archives lie, by the environment: in
// XDG_CACHE_HOME, else HOME/.cache. "" where neither is set.
func CacheDir(env []string) string {
	base := environ.Get(env, "XDG_CACHE_HOME")
	if !filepath.IsAbs(base) {
		home := environ.Get(env, "HOME")
		if !filepath.IsAbs(home) {
			return ""
		}
		base = filepath.Join(home, ".cache")
	}
	return filepath.Join(base, "cellard", "java-"+jarSum())
}

// Prepare makes the archive of classes (AppCDS) for a Java, which more than halves the
// time that a session takes to start: some seconds of work, and 15 to 20 MB in dir, once
// an image. It runs Java as this process's user; whoever's cells are to use the archive
// must be able to read it, and nobody else may be able to write to dir. "" stands for
// the directory where kernels look: for root one that is everybody's, else CacheDir. It
// does nothing where the archive is there already.
func Prepare(ctx context.Context, j *Java, dir string, env []string) error {
	if dir == "" {
		if dir = CacheDir(env); os.Geteuid() == 0 {
			dir = sharedCache()
		}
		if dir == "" {
			return errors.New("java: no directory for the archive: set HOME or XDG_CACHE_HOME")
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("java: %w", err)
	}
	if !ours(dir) {
		return fmt.Errorf("java: %s can be written to by others: chmod go-w it, or take another", dir)
	}
	if archive(dir, j) != "" {
		return nil
	}
	path := filepath.Join(dir, archiveName(j))
	part := fmt.Sprintf("%s.%d", path, os.Getpid())
	defer os.Remove(part)
	l := New(Options{Java: j, Cache: dir, Env: env, dump: part})
	err := l.train(ctx)
	if e := l.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	if err := os.Chmod(part, 0o644); err != nil {
		return fmt.Errorf("java: %s made no archive: %w", j.Executable, err)
	}
	return os.Rename(part, path)
}

// training is what is run for the archive: what most cells need.
var training = []string{
	"int x = 41; int f(int a) { return a + 1; }",
	"f(x)",
	"record P(int a, String b) {}\nvar l = List.of(new P(1, \"x\"), new P(2, \"y\"));\nl",
	"for (P p : l) System.out.println(p); l.stream().map(P::b).collect(Collectors.joining())",
	"Integer.parseInt(\"x\")",
	"int y = \"s\";",
	"class C { private final Map<String, Integer> m = new HashMap<>(); int get(String k) { return m.getOrDefault(k, 0); } }\nnew C().get(\"a\")",
	"String.format(\"%.2f %s\", Math.PI, new int[]{1, 2}.length)",
}

// train starts a session and runs what most need.
func (l *Language) train(ctx context.Context) error {
	if _, err := l.Info(); err != nil {
		return err
	}
	for i, code := range training {
		c := kernel.NewCell(code, nowhere{})
		c.Count = i + 1
		err := l.Execute(ctx, c)
		if e := (*kernel.Error)(nil); err != nil && !errors.As(err, &e) {
			return err
		}
	}
	if _, err := l.Complete(ctx, "l.st", 4); err != nil {
		return err
	}
	_, err := l.IsComplete(ctx, "if (x > 1) {")
	return err
}

// nowhere is where the output of training goes.
type nowhere struct{}

func (nowhere) Publish(string, any) {}

func (nowhere) Input(context.Context, string, bool) (string, error) {
	return "", kernel.ErrStdinNotAllowed
}

// jarSum names what an archive was made for: the jars.
func jarSum() string {
	h := sha256.New()
	h.Write(kernelJar)
	h.Write(asmJar)
	return fmt.Sprintf("%x", h.Sum(nil))[:16]
}

// archiveName names an archive: it is good for one build of Java alone.
func archiveName(j *Java) string {
	h := sha256.Sum256([]byte(j.Home + "\x00" + j.Version))
	return fmt.Sprintf("classes-%s-%x.jsa", j.Version, h[:4])
}

// owned tells whether a file is root's or this user's.
func owned(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (stat.Uid == 0 || int(stat.Uid) == os.Getuid())
}
