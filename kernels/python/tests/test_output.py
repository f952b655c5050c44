"""Every byte arrives once, in order, with its cell."""

import os
import struct
import time
import unittest

from kernel import Kernel, KernelTest


class Streams(KernelTest):
    def test_stdout_and_stderr_keep_their_order(self):
        cell = self.run_ok("import sys\nfor i in range(3): print(i); print(i, file=sys.stderr)")
        streams = [(c["name"], c["text"]) for c in cell.of("stream")]
        self.assertEqual(streams, [(n, f"{i}\n") for i in range(3) for n in ("stdout", "stderr")])
        self.assertEqual(cell.raw, {1: "", 2: ""})

    def test_many_switches_are_joined(self):
        cell = self.run_ok("for i in range(5000): print(i); print(-i, file=sys.stderr)")
        self.assertEqual(cell.stdout, "".join(f"{i}\n" for i in range(5000)))
        self.assertEqual(cell.stderr, "".join(f"{-i}\n" for i in range(5000)))
        self.assertLess(len(cell.of("stream")), 5000)

    def test_a_long_text_is_cut_between_characters(self):
        cell = self.run_ok("print('é猫🎉' * 1_000_000)")
        self.assertEqual(cell.stdout, "é猫🎉" * 1_000_000 + "\n")
        self.assertLessEqual(max(len(c["text"].encode()) for c in cell.of("stream")), 256 * 1024)

    def test_small_writes_are_joined(self):
        cell = self.run_ok("for i in range(100_000): print(i)")
        self.assertEqual(cell.stdout, "".join(f"{i}\n" for i in range(100_000)))
        self.assertLess(len(cell.of("stream")), 1000)

    def test_a_flush_sends_at_once(self):
        def on(kind, content):
            if kind == "stream" and content["text"] == "before\n":
                open(go, "w").close()

        go = os.path.join(self.kernel.cwd, "go")
        cell = self.run_ok("print('before', flush=True)\nwhile not os.path.exists('go'): time.sleep(.01)", on=on)
        self.assertEqual(cell.stdout, "before\n")

    def test_text_arrives_without_a_flush(self):
        def on(kind, content):
            if kind == "stream":
                open(go, "w").close()

        go = os.path.join(self.kernel.cwd, "go2")
        self.run_ok("print('x')\nwhile not os.path.exists('go2'): time.sleep(.01)", on=on)

    def test_surrogates_lose_nothing(self):
        cell = self.run_ok("print('a\\ud800b\\udcff'); print('c'); display({'text/plain': '\\udc80'}, raw=True)")
        self.assertEqual(cell.stdout, "a\\ud800b\\udcff\nc\n")
        self.assertEqual(cell.shown, [{"text/plain": "\\udc80"}])
        self.assertEqual(self.kernel.run("raise ValueError('\\ud800')").reply["evalue"], "\\ud800")

    def test_what_is_not_json_is_shown_all_the_same(self):
        cell = self.run_ok("display({'application/json': {'a': float('nan')}}, raw=True)")
        self.assertEqual(len(cell.shown), 1)

    def test_a_stream_is_a_file(self):
        cell = self.run_ok(
            "sys.stdout.reconfigure(encoding='utf-8')\nsys.stdout.buffer.write('é'.encode()[:1])\n"
            "sys.stdout.buffer.write('é'.encode()[1:])\nsys.stdout.writelines(['a', 'b'])\n"
            "_ = sys.stdout.isatty(), sys.stdout.encoding, sys.stdout.name, sys.stdout.fileno()\n_"
        )
        self.assertEqual(cell.stdout, "éab")
        self.assertEqual(cell.value, "(False, 'utf-8', 'stdout', 1)")
        self.assertEqual(self.kernel.run("sys.stdout.write(b'x')").error, "TypeError")

    def test_streams_that_a_cell_breaks_are_mended(self):
        for code in ("sys.stdout = open(os.devnull, 'w'); sys.stdout.close()", "sys.stdout = sys.stderr = None", "sys.stdout.close()"):
            self.run_ok("import os\n" + code)
            self.assertEqual(self.run_ok("print('there')").stdout, "there\n")

    def test_a_stream_that_a_cell_set_stays(self):
        self.run_ok("import io\nold, sys.stdout = sys.stdout, io.StringIO()\nmine = sys.stdout")
        self.run_ok("print('kept')")
        cell = self.run_ok("sys.stdout = old\nmine.getvalue()")
        self.assertEqual(cell.value, repr("kept\n"))

    def test_displays_and_text_keep_their_order(self):
        cell = self.run_ok("for i in range(200): print(i); display({'text/plain': str(i)}, raw=True)")
        seen = ""
        for kind, content in cell.messages:
            if kind == "stream":
                seen += content["text"]
            elif kind == "display_data":
                seen += f"<{content['data']['text/plain']}>"
        self.assertEqual(seen, "".join(f"{i}\n<{i}>" for i in range(200)))

    def test_a_reader_that_stalls_costs_no_memory(self):
        for code, most in (
            ("for _ in range(400): display({'text/plain': 'x' * 1_000_000}, raw=True)", 250_000_000),
            ("for _ in range(400): print('x' * 1_000_000)", 250_000_000),
            ("print('x' * 400_000_000)", 600_000_000),  # the cell's own text is that large
        ):
            with self.subTest(code):
                peak = []

                def on(kind, content, peak=peak):
                    if kind in ("stream", "display_data") and len(peak) < 30:
                        with open(f"/proc/{self.kernel.process.pid}/statm") as f:
                            peak.append(int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
                        time.sleep(0.1)

                self.run_ok(code, on=on)
                self.assertGreaterEqual(len(peak), 30)
                self.assertLess(max(peak), most)

    def test_what_was_shown_is_forgotten(self):
        def rss():
            with open(f"/proc/{self.kernel.process.pid}/statm") as f:
                return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        shows = (
            "for _ in range(100): print('x' * 1_000_000)",
            "for _ in range(100): display({'text/plain': 'x' * 1_000_000}, raw=True)",
            "class Large:\n    def __repr__(self): return 'x' * 100_000_000\nLarge()",
        )
        for code in shows:
            self.run_ok(code)
        before = rss()
        for code in shows:
            with self.subTest(code):
                self.run_ok(code)
                self.assertLess(rss(), before + 50_000_000)

    def test_values_are_not_forgotten(self):
        # IPython leaves _ alone once a cell has assigned to it, as other tests here do.
        self.run_ok("[globals().pop(name, None) for name in ('_', '__', '___')];")
        self.run_ok("'a' * 3")
        n = self.run_ok("list(range(100_000))").reply["execution_count"]
        self.assertEqual(self.value(f"_{n - 1}, Out[{n - 1}], len(Out[{n}]), len(_oh[{n}])"), "('aaa', 'aaa', 100000, 100000)")
        self.assertEqual(self.run_ok("5").value, "5")
        self.assertEqual(self.value("_ + 1, __[2]"), "(6, 100000)")
        shown = self.run_ok(f"%history -o -n {n - 1}-{n}").stdout
        self.assertIn("'aaa'", shown)
        self.assertLess(len(shown), 12_000)

    def test_ten_thousand_displays_and_a_reader_that_stalls(self):
        first = []

        def on(kind, content):
            if kind == "display_data" and not first:
                time.sleep(3)
                with open(f"/proc/{self.kernel.process.pid}/statm") as f:
                    first.append(int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))

        self.run_ok("1")
        cell = self.run_ok("for i in range(10_000): display({'text/plain': f'{i:010000}'}, raw=True)", on=on)
        self.assertEqual([d["text/plain"].lstrip("0") for d in cell.shown[1:]], [str(i) for i in range(1, 10_000)])
        self.assertLess(first[0], 150_000_000)

    def test_no_display_is_dropped(self):
        def on(kind, content):
            if kind == "execute_input":
                time.sleep(3)  # a reader that doesn't read; longer than any high-water mark lasts


        cell = self.run_ok("for i in range(20_000): display({'text/plain': str(i)}, raw=True)", on=on)
        self.assertEqual([d["text/plain"] for d in cell.shown], [str(i) for i in range(20_000)])


class Taken(KernelTest):
    """Before something is written to the descriptors, the reader has taken what came before."""

    def setUp(self):
        self.kernel = Kernel()
        self.file = os.path.join(self.kernel.dir, "taken")
        with open(self.file, "wb") as f:
            f.write(bytes(4))
        self.kernel.__enter__()
        self.addCleanup(self.kernel.__exit__)
        self.run_ok("import os, subprocess, sys, time")

    def answer(self, number):
        with open(self.file, "r+b", buffering=0) as f:
            f.write(struct.pack("<I", number))

    def asked(self, code, **kwargs):
        """Run a cell whose questions are answered; return what it had told at each."""
        had, told = [], []

        def on(kind, content):
            if kind == "taken_request":
                told.append("".join(had))
                self.answer(content["number"])
            elif kind == "stream":
                had.append(content["text"])
            elif kind == "display_data":
                had.append(content["data"]["text/plain"])

        self.run_ok(code, on=on, **kwargs)
        return told

    def test_what_came_before_is_told_when_it_asks(self):
        self.assertEqual(self.asked("print(1)\nos.system('true')\nprint(2)\nsubprocess.run(['true']);"), ["1\n", "1\n2\n"])
        self.assertEqual(self.asked("display({'text/plain': 'd'}, raw=True)\n!true"), ["d"])
        self.assertEqual(self.asked("print(1)\n_ = os.write(1, b'x'), os.write(2, b'y')"), ["1\n"])
        self.assertEqual(self.asked("print(1)\nos.fork() or os._exit(0)\n_ = os.wait()"), ["1\n"])
        told = self.asked(
            "import threading\n"
            "ts = [threading.Thread(target=lambda: (print('t'), os.system('true'))) for _ in range(8)]\n"
            "for t in ts: t.start()\n"
            "for t in ts: t.join()"
        )
        self.assertEqual(sorted(told[-1]), sorted("t\n" * 8))

    def test_it_asks_only_where_something_was_told(self):
        self.assertEqual(self.asked("for _ in range(5): os.system('true'); os.write(1, b'')"), [])
        self.assertEqual(len(self.asked("print(1)\nfor _ in range(5): os.system('true')")), 1)
        self.assertEqual(self.asked("r, w = os.pipe(); print(1); _ = os.write(w, b'x')"), [])

    def test_a_reader_that_never_answers_is_not_waited_for_for_ever(self):
        self.run_ok("import cellard_output; cellard_output.Taken.PATIENCE = 0.2")
        cell = self.run_ok("for i in range(3): print(i); os.system('echo child')")
        self.assertEqual((cell.stdout, cell.raw[1]), ("0\n1\n2\n", "child\n" * 3))

    def test_the_wait_can_be_interrupted(self):
        cell = self.kernel.run("print(1); subprocess.run(['echo', 'child'])", interrupt=[0.5])
        self.assertEqual((cell.error, cell.raw[1]), ("KeyboardInterrupt", ""))
        self.assertEqual(self.asked("print(2); os.system('true');"), ["2\n"])

    def test_a_file_that_a_cell_has_spoilt_costs_the_order_alone(self):
        self.run_ok(f"os.truncate({self.file!r}, 1)")
        cell = self.run_ok("for i in range(3): print(i); os.system('echo child')")
        self.assertEqual((cell.stdout, cell.raw[1]), ("0\n1\n2\n", "child\n" * 3))


class Raw(KernelTest):
    def test_children_and_c_write_to_the_descriptors(self):
        cell = self.run_ok("_ = os.system('echo out; echo err >&2'); _ = os.write(1, b'raw\\n')")
        self.assertEqual(cell.raw, {1: "out\nraw\n", 2: "err\n"})
        self.assertEqual(cell.of("stream"), [])
        cell = self.run_ok("import ctypes\n_ = ctypes.CDLL(None).printf(b'from C')")
        self.assertEqual(cell.raw[1], "from C")
        self.assertEqual(self.run_ok("import sys\n_ = sys.__stdout__.write('dunder')").raw[1], "dunder")
        self.assertIn("most recent call first", self.run_ok("import faulthandler; faulthandler.dump_traceback()").raw[2])

    def test_what_is_printed_is_out_before_a_child_starts(self):
        starts = {
            "system": "os.system('read x < fifo; echo child')",
            "run": "subprocess.run('read x < fifo; echo child', shell=True)",
            "popen": "os.popen('read x < fifo; echo child >&2').read()",  # its child may be left to wait for
            "spawn": "os.waitpid(os.posix_spawn('/bin/sh', ['sh', '-c', 'read x < fifo; echo child'], os.environ), 0)",
            "fork": (
                "pid = os.fork()\n"
                "pid or (open('fifo').read(), print('child'), sys.stdout.flush(), os._exit(0))\n_ = os.waitpid(pid, 0)"
            ),
            "bang": "get_ipython().system('read x < fifo; echo child')",
        }
        self.run_ok("import os, subprocess, sys\nos.mkfifo('fifo')")
        fifo = os.path.join(self.kernel.cwd, "fifo")
        for name, start in starts.items():
            with self.subTest(name):
                released = []

                def on(kind, content):
                    if kind == "stream" and not released:
                        released.append(content["text"])
                        with open(fifo, "w") as f:
                            f.write("go\n")

                cell = self.run_ok(f"print('before')\n{start}\nprint('after')", on=on)
                self.assertEqual(cell.stdout, "before\nafter\n")
                self.assertEqual(cell.raw[1] + cell.raw[2], "child\n")

    def test_forked_children_write_whole_lines(self):
        cell = self.run_ok(
            "import multiprocessing\ndef work(i): print('child', i); return i\n"
            "with multiprocessing.get_context('fork').Pool(2) as pool: print(pool.map(work, range(4)))"
        )
        self.assertEqual(sorted(cell.raw[1].splitlines()), [f"child {i}" for i in range(4)])
        self.assertEqual(cell.stdout, "[0, 1, 2, 3]\n")
        self.assertEqual(cell.stderr, "")

    def test_a_fork_that_comes_to_the_end_of_the_cell_ends(self):
        cell = self.run_ok("pid = os.fork()\nprint('parent' if pid else 'child')\nif not pid: display(7); 1/0\nos.waitpid(pid, 0)[1] >> 8")
        self.assertEqual((cell.stdout, cell.value), ("parent\n", "1"))
        self.assertEqual(cell.raw[1], "child\n7\n")
        self.assertIn("ZeroDivisionError", cell.raw[2])
        self.assertEqual(self.value("1 + 1"), "2")


class Commands(KernelTest):
    def test_a_command_has_the_descriptors(self):
        cell = self.run_ok("!echo out; echo err >&2")
        self.assertEqual(cell.raw, {1: "out\n", 2: "err\n"})
        self.assertEqual(self.value("!exit 3\n_exit_code"), "3")
        self.assertEqual(self.run_ok("name = 'x y'\n!echo {name} $name").raw[1], "x y x y\n")
        self.assertEqual(self.run_ok("!cat").raw[1], "")  # nothing to read, rather than a wait

    def test_a_commands_output_as_a_value(self):
        cell = self.run_ok("x = !printf 'a\\nb\\n'; echo c >&2\nlist(x)")
        self.assertEqual(cell.value, "['a', 'b', 'c']")

    def test_long_lines_and_odd_bytes(self):
        cell = self.run_ok("!head -c 300000 /dev/zero | tr '\\0' x; printf '\\377'; echo after")
        self.assertEqual(cell.raw[1], "x" * 300000 + "\ufffdafter\n")
        cell = self.run_ok("%%bash\nhead -c 300000 /dev/zero | tr '\\0' x")
        self.assertEqual(cell.raw[1], "x" * 300000)

    def test_scripts(self):
        cell = self.run_ok("%%bash\necho out; echo err >&2; read line || echo none")
        self.assertEqual(cell.raw, {1: "out\nnone\n", 2: "err\n"})
        self.assertEqual(self.kernel.run("%%bash\nexit 3").error, "CalledProcessError")
        self.run_ok("%%bash --no-raise-error\nexit 3")
        self.assertEqual(self.kernel.run("%%script no-such-program\nx").error, "FileNotFoundError")
        self.assertEqual(self.run_ok("%%bash --out text\necho kept").raw[1], "")
        self.assertEqual(self.value("text.strip()"), "'kept'")

    def test_a_command_in_the_background(self):
        self.run_ok("!(while [ ! -e go ]; do sleep .01; done; echo later) &")
        self.assertEqual(self.run_ok("open('go', 'w').close()\ntime.sleep(.5)").raw[1], "later\n")


class Late(KernelTest):
    def test_a_thread_keeps_its_cell(self):
        first = self.run_ok("import threading, time\ngo = threading.Event()\nthreading.Thread(target=lambda: (go.wait(), print('late'), display(1))).start()")
        second = self.run_ok("go.set(); time.sleep(.5); print('now')")
        self.assertEqual(second.stdout, "now\n")
        late = [(m, c.get("text") or c["data"]["text/plain"]) for m, _, c in second.late]
        self.assertEqual(late, [(first.id, "late\n"), (first.id, "1")])

    def test_a_task_keeps_its_cell(self):
        first = self.run_ok("import asyncio\nasync def later(): await asyncio.sleep(.2); print('late')\ntask = asyncio.create_task(later())")
        second = self.run_ok("await asyncio.sleep(.5)\nprint('now')")
        self.assertEqual(second.stdout, "now\n")
        self.assertEqual([(m, c["text"]) for m, _, c in second.late], [(first.id, "late\n")])

    def test_a_pool_works_for_the_cell_that_runs(self):
        self.run_ok("from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(1)\n_ = list(pool.map(print, [1]))")
        cell = self.run_ok("_ = list(pool.map(print, [2]))")
        self.assertEqual((cell.stdout, cell.late), ("2\n", []))


if __name__ == "__main__":
    unittest.main()
