"""What a cell is given and what it leaves: environment, errors, exit, input, packages."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import zipfile

from kernel import SOURCES, KernelTest


def given(**what):
    return {"cellard": what}


class Surroundings(KernelTest):
    def test_env_and_cwd_are_the_cells_alone(self):
        there = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, there)
        odd = "it's \"q\"\n$x {y}"
        cell = self.run_ok("(os.environ['A'], os.getcwd())", metadata=given(env={"A": odd}, cwd=there))
        self.assertEqual(eval(cell.value), (odd, os.path.realpath(there)))
        cell = self.run_ok("(os.environ.get('A'), os.getcwd())")
        self.assertEqual(eval(cell.value), (None, os.path.realpath(self.kernel.cwd)))

    def test_children_have_them(self):
        self.assertEqual(self.run_ok("%%bash\necho $B", metadata=given(env={"B": "bar"})).raw[1], "bar\n")
        self.assertEqual(self.run_ok("!pwd", metadata=given(cwd="/")).raw[1], "/\n")

    def test_the_text_of_the_cell_is_left_alone(self):
        cell = self.kernel.run("1\n1/0", metadata=given(env={"B": "b"}))
        self.assertIn("line 2", cell.traceback)

    def test_old_values_are_back_after_any_end(self):
        self.run_ok("os.environ['A'] = 'old'")
        for code, interrupt in (
            ("1/0", ()),
            ("x = = 1", ()),
            ("await asyncio.sleep(0)\n1/0", ()),
            ("exit()", ()),
            ("time.sleep(300)", (0.3,)),
            ("await asyncio.sleep(300)", (0.3,)),
            ("asyncio.current_task().cancel()\nawait asyncio.sleep(1)", ()),
        ):
            with self.subTest(code):
                self.kernel.run(code, interrupt=interrupt, metadata=given(env={"A": "new"}, cwd="/"))
                self.assertEqual(self.value("os.environ['A'], os.getcwd() == '/'"), "('old', False)")

    def test_what_the_cell_changes_itself_stays(self):
        self.run_ok("os.environ.pop('A', None); os.environ['B'] = 'old'; home = os.getcwd()")
        self.run_ok("os.environ['A'] = 'mine'; del os.environ['B']; os.chdir('/tmp')", metadata=given(env={"A": "a", "B": "b", "C": "c"}, cwd="/"))
        self.assertEqual(self.value("os.environ['A'], os.environ.get('B'), os.environ.get('C'), os.getcwd()"), "('mine', None, None, '/tmp')")
        self.run_ok("os.chdir(home)")

    def test_a_directory_that_moved_is_gone_back_to(self):
        self.run_ok("home = os.getcwd(); os.mkdir('was'); os.chdir('was')")
        self.run_ok(f"os.rename({self.kernel.cwd!r} + '/was', {self.kernel.cwd!r} + '/is')", metadata=given(cwd="/"))
        self.assertEqual(self.value("os.path.basename(os.getcwd())"), "'is'")
        self.run_ok("os.chdir(home)")

    def test_what_cannot_be_given_is_the_cells_error(self):
        for what, error in (
            ({"cwd": "/no/such/place", "env": {"A": "1"}}, "InvalidDirectory"),
            ({"cwd": "/etc/passwd"}, "InvalidDirectory"),
            ({"env": {"A=B": "1"}}, "ValueError"),
            ({"env": {"": "1"}}, "ValueError"),
            ({"env": {"A": "a\0b"}, "cwd": "/"}, "ValueError"),
        ):
            with self.subTest(what):
                self.run_ok("ran = False; os.environ.pop('A', None); home = os.getcwd()")
                cell = self.kernel.run("ran = True", metadata=given(**what))
                self.assertEqual((cell.status, cell.error), ("error", error))
                self.assertEqual([c["ename"] for c in cell.of("error")], [error])
                self.assertEqual(self.value("ran, os.environ.get('A'), os.getcwd() == home"), "(False, None, True)")

    def test_counts_go_on(self):
        first = self.run_ok("1").reply["execution_count"]
        failed = self.kernel.run("1", metadata=given(cwd="/no/such/place")).reply["execution_count"]
        self.assertEqual((failed, self.run_ok("1").reply["execution_count"]), (first + 1, first + 2))


class Errors(KernelTest):
    def test_tracebacks_are_plain(self):
        for code, name in (
            ("def f():\n    return 1/0\nf()", "ZeroDivisionError"),
            ("x = = 1", "SyntaxError"),
            ("def f(): return f()\nf()", "RecursionError"),
            ("try: 1/0\nexcept Exception: raise KeyError('k')", "KeyError"),
            ("await asyncio.sleep(0)\n1/0", "ZeroDivisionError"),
            ("%%bash\nexit 1", "CalledProcessError"),
            ("raise ExceptionGroup('g', [ValueError(1)])" if sys.version_info >= (3, 11) else "raise ValueError", None),
        ):
            with self.subTest(code):
                cell = self.kernel.run(code)
                self.assertEqual(cell.status, "error")
                if name:
                    self.assertEqual(cell.error, name)
                self.assertEqual([c["ename"] for c in cell.of("error")], [cell.error])
                self.assertNotIn("\x1b", cell.traceback)
                self.assertNotIn("cellard_", cell.traceback)
                self.assertEqual(cell.stderr, "")

    def test_a_traceback_shows_the_users_frames(self):
        text = self.kernel.run("def f():\n    return 1/0\nf()").traceback
        self.assertIn("in f()", text)
        self.assertIn("division by zero", text)
        with open(os.path.join(self.kernel.cwd, "script.py"), "w") as f:
            f.write("def g():\n    1/0\ng()\n")
        cell = self.kernel.run("%run script.py")
        self.assertIn("script.py", "\n".join(cell.of("error")[0]["traceback"]))

    def test_a_group_of_errors_shows_them_all(self):
        if sys.version_info < (3, 11):
            return  # there are none
        cell = self.kernel.run("def f(): raise ValueError('inner')\ntry: f()\nexcept Exception as e: raise ExceptionGroup('outer', [e, KeyError('k')])")
        self.assertEqual((cell.error, cell.stderr), ("ExceptionGroup", ""))
        for text in ("outer (2 sub-exceptions)", "ValueError: inner", "in f", "KeyError: 'k'"):
            self.assertIn(text, cell.traceback)
        self.assertNotIn("run_code", cell.traceback)

    def test_no_colours_are_asked_of_children(self):
        self.assertEqual(self.value("[os.environ.get(n) for n in ('FORCE_COLOR', 'CLICOLOR_FORCE', 'CLICOLOR')]"), "[None, None, None]")

    def test_tasks_that_a_cell_ends(self):
        self.kernel.run("for task in asyncio.all_tasks(): task.cancel()")
        self.assertEqual(self.value("1 + 1"), "2")
        self.kernel.run("for task in asyncio.all_tasks(): task.cancel()\nawait asyncio.sleep(1)")
        self.assertEqual(self.value("1 + 1"), "2")
        self.kernel.run("async def leave(): sys.exit(3)\ntask = asyncio.create_task(leave())\nawait asyncio.sleep(.2)")
        self.assertEqual(self.value("1 + 1"), "2")


class Exit(KernelTest):
    def test_exit_ends_the_cell_quietly(self):
        self.run_ok("kept = 1")
        for code in ("exit()", "quit()", "exit(0)", "exit", "exit(None)", "import sys; sys.exit()", "sys.exit(0)", "raise SystemExit", "sys.exit(False)"):
            with self.subTest(code):
                cell = self.run_ok(f"print('before')\n{code}\nprint('after')")
                if code != "exit":
                    self.assertEqual(cell.stdout, "before\n")
                self.assertEqual((cell.stderr, cell.of("error"), cell.reply["payload"]), ("", [], []))
        self.run_ok("await asyncio.sleep(0)\nexit()\n1/0")
        self.assertEqual(self.value("kept"), "1")

    def test_a_status_is_an_error(self):
        for code, value in (("exit(2)", "2"), ("sys.exit(3)", "3"), ("raise SystemExit('why')", "why"), ("sys.exit('')", ""), ("sys.exit(0.0)", "0.0"), ("await asyncio.sleep(0)\nsys.exit(4)", "4")):
            with self.subTest(code):
                cell = self.kernel.run(f"print('before')\n{code}\nprint('after')")
                self.assertEqual((cell.error, cell.reply["evalue"]), ("SystemExit", value))
                self.assertEqual((cell.stdout, cell.stderr), ("before\n", ""))
        self.assertEqual(self.value("1 + 1"), "2")

    def test_an_exit_that_is_caught(self):
        cell = self.run_ok("try: exit()\nexcept SystemExit: print('caught')")
        self.assertEqual(cell.stdout, "caught\n")


class Input(KernelTest):
    def test_without_answers_it_fails_at_once(self):
        for code, prompt in (
            ("input('name: ')", "name: "),
            ("input(7)", "7"),
            ("input()", ""),
            ("import getpass; getpass.getpass()", ""),
            ("getpass.getpass('secret? ')", "secret? "),
            ("import threading\nerrors = []\ndef ask():\n    try: input('thread? ')\n    except Exception as e: errors.append(e)\n"
             "t = threading.Thread(target=ask); t.start(); t.join()\nraise errors[0]", "thread? "),
        ):
            with self.subTest(code):
                cell = self.kernel.run(code)
                self.assertEqual((cell.error, cell.stdout), ("StdinNotImplementedError", prompt))
                self.assertIn('send them in "stdin"', cell.reply["evalue"])
        cell = self.kernel.run("breakpoint()")
        self.assertEqual(cell.error, "StdinNotImplementedError")
        self.assertTrue(cell.stdout.endswith(" "), cell.stdout)  # the debugger's prompt
        cell = self.run_ok("sys.stdout, real = None, sys.stdout\ntry: input('?')\nexcept Exception as e: name = type(e).__name__\nsys.stdout = real; name")
        self.assertEqual(cell.value, "'StdinNotImplementedError'")
        self.assertEqual(self.value("sys.stdin.read()"), "''")

    def test_with_answers(self):
        answers = iter(["1", "2", "3"])
        prompts = []

        def answer():
            for value in answers:
                request = self.kernel.client.get_stdin_msg(timeout=60)["content"]
                prompts.append((request["prompt"], request["password"]))
                self.kernel.client.input(value)

        thread = threading.Thread(target=answer)
        thread.start()
        cell = self.run_ok("import getpass\nprint('before'); a = input('a? '); b = getpass.getpass('b? '); c = input(); a + b + c", allow_stdin=True)
        thread.join()
        self.assertEqual((cell.value, prompts), ("'123'", [("a? ", False), ("b? ", True), ("", False)]))


class Packages(KernelTest):
    def wheel(self, name):
        path = os.path.join(self.kernel.cwd, f"{name}-1.0-py3-none-any.whl")
        with zipfile.ZipFile(path, "w") as z:
            z.writestr(f"{name}.py", "V = 7\n")
            z.writestr(f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
            z.writestr(f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            z.writestr(f"{name}-1.0.dist-info/RECORD", "")
        return path

    def test_what_pip_installs_imports_in_the_next_line(self):
        target = os.path.join(self.kernel.cwd, "site")
        os.mkdir(target)
        self.run_ok(f"sys.path.append({target!r})")
        for how in ("%pip", "!{sys.executable} -m pip", "import subprocess; subprocess.run([sys.executable, '-m', 'pip', *'{}'.split()], check=True)"):
            name = f"cellard_test_{len(os.listdir(target))}"
            line = f"install -q --no-index --no-deps --no-compile --disable-pip-version-check --target {target} {self.wheel(name)}"
            with self.subTest(how):
                command = how.format(line) if "{}" in how else f"{how} {line}"
                # The clock of a directory is too coarse to tell: as if it had not moved.
                cell = self.run_ok(
                    f"try: import {name}\nexcept ImportError: pass\nst = os.stat({target!r})\n{command}\n"
                    f"os.utime({target!r}, ns=(st.st_atime_ns, st.st_mtime_ns))\nimport {name}\n{name}.V"
                )
                self.assertEqual(cell.value, "7")

    def test_what_comes_between_cells_imports(self):
        self.run_ok("os.mkdir('late'); sys.path.append(os.path.abspath('late'))\ntry: import zzz_late\nexcept ImportError: pass\nst = os.stat('late')")
        with open(os.path.join(self.kernel.cwd, "late", "zzz_late.py"), "w") as f:
            f.write("V = 7\n")
        self.run_ok("os.utime('late', ns=(st.st_atime_ns, st.st_mtime_ns))")
        self.assertEqual(self.value("import zzz_late\nzzz_late.V"), "7")

    def outside(self, code, **env):
        """Run code with cellard_packages in the Python that the environment was made from."""
        python = getattr(sys, "_base_executable", sys.executable)
        code = f"import sys; sys.path.insert(0, {SOURCES!r}); sys.dont_write_bytecode = True\nimport cellard_packages as p, os, site\n{code}"
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "PYTHON"))}
        return subprocess.run([python, "-c", code], env={**clean, **env}, stdout=subprocess.PIPE, check=True, text=True).stdout.strip()

    def test_a_user_site_that_was_made_later(self):
        base = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, base)
        out = self.outside(
            "d = site.getusersitepackages(); before = d in sys.path\np.refresh(); os.makedirs(d)\n"
            "open(os.path.join(d, 'zzz_user.py'), 'w').write('V = 7')\n"
            "finder = p.LateFinder(); sys.meta_path.append(finder)\n"
            "try: import zzz_user\nexcept ImportError: missed = True\n"
            "finder.expect()\nimport zzz_user\nprint(before, missed, d in sys.path, zzz_user.V)",
            PYTHONUSERBASE=base,
        )
        self.assertEqual(out, "False True True 7")

    def test_a_system_that_refuses_pip(self):
        out = self.outside(
            "import sysconfig\nmarked = os.path.exists(os.path.join(sysconfig.get_path('stdlib'), 'EXTERNALLY-MANAGED'))\n"
            "p.allow_pip(); print(os.environ.get('PIP_BREAK_SYSTEM_PACKAGES') == ('1' if marked else None))"
        )
        self.assertEqual(out, "True")
        out = self.outside(
            "import sysconfig, tempfile\nd = tempfile.mkdtemp(); open(os.path.join(d, 'EXTERNALLY-MANAGED'), 'w').close()\n"
            "sysconfig.get_path = lambda name: d\np.allow_pip(); print(os.environ['PIP_BREAK_SYSTEM_PACKAGES'])"
        )
        self.assertEqual(out, "1")
        self.assertEqual(self.value("sys.prefix != sys.base_prefix and 'PIP_BREAK_SYSTEM_PACKAGES' in os.environ"), "False")


if __name__ == "__main__":
    unittest.main()
