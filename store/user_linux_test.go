package store

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cellard/cellard/protocol/api"
)

// TestOtherUser has cells that run as another user, as they do where the agent is
// root: they made the directory first, they can read, and nothing else.
func TestOtherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	// A umask that would hide all from others.
	defer unix.Umask(unix.Umask(0o077))
	const nobody = 65534
	workspace := t.TempDir()
	runtime := filepath.Join(workspace, ".runtime")
	must(t, os.Chmod(filepath.Dir(workspace), 0o755), os.Chmod(workspace, 0o755), os.Chown(workspace, nobody, nobody),
		os.Mkdir(runtime, 0o777), os.Chown(runtime, nobody, nobody),
		os.WriteFile(filepath.Join(workspace, "secret"), []byte("secret"), 0o600))
	cell := func(script string) error {
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir = workspace
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		out, err := cmd.CombinedOutput()
		t.Logf("%s: %v %s", script, err, out)
		return err
	}
	must(t, cell("mkdir .runtime/interpreter && mkfifo -m 666 .runtime/interpreter/.lock"))

	s := openStore(t, filepath.Join(runtime, "interpreter"), Options{})
	ref := put(t, s, "python", 1, "text/plain", []byte("content"))
	if err := cell("test content = \"$(cat " + ref.Path + ")\""); err != nil {
		t.Error("a cell can't read it")
	}
	for _, script := range []string{
		"echo x > " + ref.Path,
		"rm -f " + ref.Path,
		"chmod 777 " + ref.Path,
		"touch .runtime/interpreter/python/out/x",
		"mv .runtime/interpreter .runtime/away",
		"cat .runtime/interpreter/.lock",
	} {
		if cell(script) == nil {
			t.Errorf("a cell can: %s", script)
		}
	}
	read(t, s, "python", filepath.Base(ref.Path))

	// The workspace is theirs, so they can move the whole and put their own there,
	// with a link to what only root may read.
	name := filepath.Base(ref.Path)
	must(t, cell("mv .runtime away && mkdir -p .runtime/interpreter/python/out && ln -s ../../../../secret .runtime/interpreter/python/out/"+name))
	_, err := s.Open("python", name)
	wantCode(t, err, api.CodeGone)
	put(t, s, "python", 1, "text/plain", []byte("content"))
	read(t, s, "python", name)
	if got, err := os.ReadFile(filepath.Join(workspace, "secret")); err != nil || string(got) != "secret" {
		t.Errorf("the secret is %q, %v", got, err)
	}
}
