"""An interrupt ends the running cell, keeps the session, and never costs a reply."""

import os
import signal
import threading
import time
import unittest
from unittest import mock

from kernel import Kernel, KernelTest

ONCE = (0.3,)
TWICE = (0.3, 0.6)


class Interrupts(KernelTest):
    def setUp(self):
        super().setUp()
        self.run_ok("import signal, threading; X = 1")

    def stops(self, code, interrupt=ONCE, status="error"):
        cell = self.kernel.run(code, interrupt=interrupt)
        self.assertEqual(cell.status, status, cell.reply)
        if status == "error":
            self.assertEqual(cell.error, "KeyboardInterrupt", cell.reply)
            self.assertEqual([c["ename"] for c in cell.of("error")], ["KeyboardInterrupt"])
            self.assertNotIn("cellard_", cell.traceback)  # how it was done is no matter of the cell's
        self.assertEqual(self.value("X"), "1")
        return cell

    def test_code_that_runs_or_waits(self):
        for code in (
            "while True: pass",
            "time.sleep(300)",
            "while True: print('x')",
            "lock = threading.Lock(); lock.acquire(); lock.acquire()",
            "import subprocess; subprocess.run(['sleep', '300'])",
            "%timeit -n1 -r1 time.sleep(300)",
            "class Slow:\n    def __repr__(self):\n        while True: pass\nSlow()",
            "a = 1\ntime.sleep(300)\nb = 2",
        ):
            with self.subTest(code):
                self.stops(code)

    def test_await(self):
        for code in (
            "await asyncio.sleep(300)",
            "await asyncio.sleep(0)\nwhile True: pass",
            "await asyncio.gather(asyncio.sleep(300), asyncio.sleep(300))",
            "async def busy():\n    while True: pass\nawait asyncio.gather(busy(), asyncio.sleep(300))",
        ):
            with self.subTest(code):
                self.stops(code)

    def test_a_command_ends_and_so_does_the_cell(self):
        for code in ("!sleep 300", "!trap '' INT; sleep 300; sleep 300", "x = !sleep 300", "%%bash\nsleep 300; echo no"):
            with self.subTest(code):
                cell = self.stops(code if code.startswith("%") else code + "\nprint('no')")
                self.assertEqual(cell.stdout + cell.raw[1], "")

    def test_a_command_of_ipythons_own_ends_and_so_does_the_cell(self):
        for more in ("", "--no-raise-error "):
            cell = self.stops(f"get_ipython().run_cell_magic('bash', '{more}--out x', 'sleep 300')\nprint('no')")
            self.assertNotIn("no\n", cell.stdout)

    def interrupt_and_end_children(self):
        """Has the children that wait for it end once the kernel was interrupted."""
        path = os.path.join(self.kernel.cwd, "go")
        if os.path.exists(path):
            os.remove(path)

        def interrupt():
            Kernel.interrupt(self.kernel)
            open(path, "w").close()

        return mock.patch.object(self.kernel, "interrupt", interrupt)

    def test_while_a_child_has_it_ignored(self):
        self.run_ok("import ctypes; WAIT = 'until [ -e go ]; do sleep .05; done'")
        for code in (
            "os.system(WAIT)\nprint('no')",
            "while True: os.system('sleep .1')",
            "ctypes.CDLL(None).system(WAIT.encode())\nprint('no')",
            "try: os.system(WAIT)\nexcept KeyboardInterrupt: raise\nprint('no')",
            "t = threading.Thread(target=os.system, args=(WAIT,)); t.start(); t.join()\nprint('no')",
            "await asyncio.to_thread(os.system, WAIT)\nprint('no')",
        ):
            with self.subTest(code), self.interrupt_and_end_children():
                self.assertEqual(self.stops(code).stdout, "")
        handler = "got = []\nsignal.signal(signal.SIGINT, lambda signum, _: got.append(signum))\nos.system(WAIT); got"
        with self.interrupt_and_end_children():
            self.assertEqual(self.kernel.run(handler, interrupt=ONCE).value, "[2]")
        self.run_ok("threading.Thread(target=os.system, args=('sleep 5',), daemon=True).start()")
        self.stops("while True:\n    try: time.sleep(1)\n    except: pass", TWICE)

    def test_the_other_signal_is_a_cells_too(self):
        self.assertEqual(
            self.value(
                "mine = lambda *_: got.append(_[0])\ngot = []\n"
                "before = signal.getsignal(62), signal.signal(62, mine)\nsignal.raise_signal(62)\n"
                "before == (signal.SIG_DFL,) * 2, signal.getsignal(62) is mine, got"
            ),
            "(True, True, [62])",
        )
        self.assertEqual(self.value("signal.getsignal(62) is mine"), "True")
        self.stops("while True:\n    try: time.sleep(1)\n    except: pass", TWICE)
        self.run_ok("_ = signal.signal(62, signal.SIG_DFL)")
        with self.interrupt_and_end_children():
            self.stops("os.system('until [ -e go ]; do sleep .05; done')\nprint('no')")

    def test_cleaning_up_is_left_whole(self):
        cell = self.stops("try:\n    time.sleep(300)\nfinally:\n    time.sleep(.3); print('clean')")
        self.assertEqual(cell.stdout, "clean\n")

    def test_what_swallows_it(self):
        for code in (
            "while True:\n    try: time.sleep(1)\n    except: pass",
            "i = 0\nwhile True:\n    try: i += 1\n    except: pass",
            "def step():\n    try: time.sleep(1)\n    except: pass\nwhile True:\n    try: step()\n    except: pass",
            "while True:\n    try:\n        try: time.sleep(1)\n        except: pass\n    except: pass",
            "import contextlib\nwhile True:\n    with contextlib.suppress(BaseException): time.sleep(1)",
            "try:\n    time.sleep(300)\nfinally:\n    while True:\n        try: time.sleep(.1)\n        except BaseException: pass",
            "def count():\n    while True:\n        try: yield time.sleep(.3)\n        except BaseException: pass\n"
            "while True:\n    try:\n        for _ in count(): pass\n    except BaseException: pass",
            "class Stubborn:\n    def __repr__(self):\n        while True:\n            try: time.sleep(1)\n"
            "            except BaseException: pass\nStubborn()",
        ):
            with self.subTest(code):
                self.stops(code, TWICE)
        self.assertEqual(self.value("sys.gettrace(), sys.getprofile()"), "(None, None)")

    def test_what_swallows_a_cancel(self):
        for code in (
            "while True:\n    try: await asyncio.sleep(1)\n    except BaseException: pass",
            "await asyncio.sleep(0)\nwhile True:\n    try: time.sleep(1)\n    except BaseException: pass",
            "async def stubborn():\n    while True:\n        try: await asyncio.sleep(1)\n        except BaseException: pass\n"
            "await asyncio.gather(stubborn(), stubborn())",
            "async def stubborn():\n    while True:\n        try: time.sleep(1)\n        except BaseException: pass\n"
            "await asyncio.gather(stubborn(), asyncio.sleep(300))",
        ):
            with self.subTest(code):
                self.stops(code, TWICE)

    def test_an_earlier_cells_task_lives(self):
        self.run_ok("async def serve():\n    while True: await asyncio.sleep(.01)\nserver = asyncio.create_task(serve())")
        self.stops("while True:\n    try: await asyncio.sleep(1)\n    except BaseException: pass", TWICE)
        self.assertEqual(self.value("server.done()"), "False")
        self.run_ok("server.cancel()")

    def test_a_handler_of_the_cells(self):
        cell = self.stops(
            "stop = []\nsignal.signal(signal.SIGINT, lambda *_: stop.append(1))\nwhile not stop: time.sleep(.05)\nprint('graceful')",
            status="ok",
        )
        self.assertEqual(cell.stdout, "graceful\n")
        self.stops("time.sleep(300)")  # and it is gone in the next cell
        self.stops("signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: time.sleep(1)", TWICE)
        self.stops("signal.signal(signal.SIGINT, lambda *_: None)\nwhile True: time.sleep(.1)", TWICE)

    def test_handlers_look_as_they_do_elsewhere(self):
        self.assertEqual(self.value("signal.getsignal(signal.SIGINT) is signal.default_int_handler"), "True")
        self.assertEqual(
            self.value(
                "mine = lambda *_: None\nold = signal.signal(signal.SIGINT, mine)\n"
                "(old is signal.default_int_handler, signal.getsignal(signal.SIGINT) is mine,\n"
                " signal.signal(signal.SIGINT, old) is mine, signal.getsignal(signal.SIGINT) is old)"
            ),
            "(True, True, True, True)",
        )
        self.assertEqual(self.kernel.run("signal.signal(signal.SIGINT, 'x')").error, "TypeError")
        child = "import subprocess; subprocess.run([sys.executable, '-c', 'import signal; print(signal.getsignal(2) is signal.default_int_handler)'], capture_output=True, preexec_fn=%s).stdout"
        self.assertEqual(self.value(child % "None"), repr(b"True\n"))
        self.assertEqual(self.value(child % "lambda: signal.signal(2, signal.SIG_IGN)"), repr(b"False\n"))

    def test_a_trace_function_of_the_cells_is_back(self):
        self.stops(
            "def mine(*_): return None\nsys.settrace(mine)\nwhile True:\n    try: time.sleep(1)\n    except BaseException: pass",
            TWICE,
        )
        self.assertEqual(self.value("sys.gettrace() is mine, sys.settrace(None)"), "(True, None)")

    def test_callbacks_of_a_cells_end(self):
        self.stops(
            "def slow():\n    get_ipython().events.unregister('post_execute', slow)\n    while True: pass\n"
            "get_ipython().events.register('post_execute', slow)",
            status="ok",
        )

    def test_an_interrupt_for_nobody_is_harmless(self):
        for _ in range(50):
            self.kernel.interrupt()
            time.sleep(0.002)
        self.assertEqual(self.value("1 + 1"), "2")

    def test_an_interrupt_at_a_cells_ends_never_costs_a_reply(self):
        for i in range(60):
            timer = threading.Timer(i * 0.0005, self.kernel.interrupt)
            timer.start()
            cell = self.kernel.run("for _ in range(10): pass\n1")
            timer.join()
            if cell.status == "ok":
                self.assertEqual(cell.value, "1")
            else:
                self.assertEqual(cell.error, "KeyboardInterrupt")
        self.assertEqual(self.value("1 + 1"), "2")

    def test_other_signals_end_the_kernel(self):
        me = self.kernel.process
        me.send_signal(signal.SIGTERM)
        self.assertEqual(me.wait(60), -signal.SIGTERM)


if __name__ == "__main__":
    unittest.main()
