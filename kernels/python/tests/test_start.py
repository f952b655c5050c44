"""A kernel starts quickly and the same, whatever the machine and its user are like."""

import os
import shutil
import tempfile
import unittest

from kernel import Kernel


class Start(unittest.TestCase):
    def check(self, code="1 + 1", value="2", **how):
        """The kernel starts in silence and runs the code."""
        with Kernel(**how) as kernel:
            self.assertEqual((kernel.raw(1), kernel.raw(2)), ("", ""))
            cell = kernel.run(code)
            self.assertEqual(cell.status, "ok", cell.reply)
            self.assertEqual([m for m in cell.late if m[1] == "stream"], [])
            self.assertEqual(cell.stderr, "")
            if value is not None:
                self.assertEqual(cell.value, value)
            return cell

    def directory(self):
        path = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, path)
        return path

    def traps(self, names):
        """A directory with modules that must not be imported by the kernel."""
        path = self.directory()
        for name in names:
            with open(os.path.join(path, name + ".py"), "w") as f:
                f.write(f"import sys\nsys.stderr.write('{name} of the cells')\nTRAP = 1\n")
        return path

    def test_modules_in_the_cells_directory(self):
        # Not types: a .pth file of a package (matplotlib 3.6's) may import it at Python's own
        # start, before anything of ours, and then takes PYTHONPATH's.
        names = ("random", "email", "json", "asyncio", "signal", "zmq", "IPython", "ipykernel", "tornado", "cellard_kernel", "comm")
        trap = self.traps(names)
        self.check("import random, email\nhasattr(random, 'TRAP'), hasattr(email, 'TRAP')", "(False, False)", cwd=trap)
        for path in (trap, ".", ":"):
            with self.subTest(path):
                self.check(f"__import__('os').path.samefile(__import__('sys').path[0], {trap!r})", "True", cwd=trap, env={"PYTHONPATH": path})

    def test_the_cells_own_modules_import(self):
        path = self.directory()
        with open(os.path.join(path, "mine.py"), "w") as f:
            f.write("V = 7\n")
        self.check("import mine; mine.V", "7", cwd=path)
        self.check("import mine; mine.V", "7", cwd="/", env={"PYTHONPATH": path})

    def test_the_launcher_is_not_in_the_way(self):
        self.check("import sys, os\nsys.argv, [p for p in sys.path if 'cellard-kernel' in p], __name__, [n for n in globals() if n.startswith('cellard')]",
                   "([''], [], '__main__', [])")

    def test_homes(self):
        for env in ({"HOME": "/nonexistent"}, {"HOME": "/proc"}, {"HOME": ""}):
            with self.subTest(env):
                self.check(env=env)
        self.check(unset=("HOME",))
        nowhere = {name: "/proc/none" for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "IPYTHONDIR")}
        self.check(env=nowhere)

    def test_a_configuration_of_the_users_is_no_matter(self):
        path = self.directory()
        os.makedirs(os.path.join(path, "profile_default", "startup"))
        for name in ("profile_default/startup/0.py", "profile_default/ipython_kernel_config.py", "startup.py"):
            with open(os.path.join(path, name), "w") as f:
                f.write("mark = 1; print('ran'); raise RuntimeError\n")
        self.check("'mark' in globals()", "False", env={"IPYTHONDIR": path, "PYTHONSTARTUP": os.path.join(path, "startup.py")})

    def test_locales(self):
        code = "import subprocess, sys\nopen('u', 'w').write('é'); (sys.stdout.encoding, sys.getfilesystemencoding(), open('u', encoding='utf-8').read())"
        for env in ({"LANG": "C", "LC_ALL": "C"}, {"LANG": "de_DE.ISO-8859-1"}, {"LANG": "xx"}):
            with self.subTest(env):
                self.check(code, "('utf-8', 'utf-8', 'é')", env=env, unset=() if "LC_ALL" in env else ("LC_ALL",))

    def test_environments(self):
        for env in ({"PYTHONWARNINGS": "error"}, {"PYTHONWARNINGS": "default"}, {"PYTHONOPTIMIZE": "2"}, {"JPY_PARENT_PID": "999999"},
                    {"PYTHONSAFEPATH": "1"}, {"TMPDIR": "/nonexistent"}, {"PYTHONDONTWRITEBYTECODE": "1"}, {"PYTHONUNBUFFERED": "1"}):
            with self.subTest(env):
                self.check(env=env)
        self.check(options=("-X", "dev"))

    def test_nothing_needless_is_imported(self):
        cell = self.check("import sys\n[n for n in ('debugpy', 'jedi', 'matplotlib', 'pandas', 'numpy', 'polars', 'prompt_toolkit') if n in sys.modules]", "[]")
        self.assertEqual(cell.stdout, "")
        self.check("import debugpy, jedi, IPython; IPython.embed.__name__ in ('embed', '_embed')", "True")

    def test_no_history_is_kept_on_disk(self):
        home = self.directory()
        self.check("1 + 1", env={"HOME": home})
        self.assertEqual(os.listdir(home), [])

    def test_no_port_is_listened_on(self):
        self.check(
            "import os\n"
            "links = [os.readlink(f.path) for f in os.scandir('/proc/self/fd') if os.path.exists(f.path) or os.path.islink(f.path)]\n"
            "mine = {link[8:-1] for link in links if link.startswith('socket:[')}\n"
            "listening = {line.split()[9] for line in open('/proc/net/tcp') if line.split()[3] == '0A'}\n"
            "bool(mine), mine & listening",
            "(True, set())",
        )


if __name__ == "__main__":
    unittest.main()
