"""A kernel under test: the launcher in a process of its own, and cells run in it.

    with Kernel() as kernel:
        cell = kernel.run("print(1); 2")
        cell.stdout, cell.value
"""

import array
import collections
import fcntl
import glob
import os
import queue
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest

from jupyter_client import BlockingKernelClient
from jupyter_client.connect import write_connection_file

SOURCES = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Far above what anything takes: a test that would hang fails.
LIMIT = 120
TABLE = "application/vnd.runtime.table+json"


class Cell:
    """What came of a cell."""

    def __init__(self):
        self.messages = []  # of iopub, as (type, content)
        self.raw = {1: "", 2: ""}  # what the kernel's descriptors had
        self.late = []  # messages of other cells, as (message id, type, content)
        self.reply = None

    def text(self, name):
        return "".join(c["text"] for t, c in self.messages if t == "stream" and c["name"] == name)

    def of(self, kind):
        return [c for t, c in self.messages if t == kind]

    stdout = property(lambda self: self.text("stdout"))
    stderr = property(lambda self: self.text("stderr"))
    status = property(lambda self: self.reply["status"])
    error = property(lambda self: self.reply.get("ename"))
    shown = property(lambda self: [c["data"] for c in self.of("display_data")])

    @property
    def data(self):
        """The bundle of the last expression's value."""
        results = self.of("execute_result")
        assert len(results) == 1, f"{len(results)} results; {self.reply}"
        return results[0]["data"]

    value = property(lambda self: self.data["text/plain"])

    @property
    def traceback(self):
        return "\n".join(self.reply["traceback"])


class Kernel:
    """A running kernel. Entered, it answers; left, nothing of it is left."""

    def __init__(self, env=None, unset=(), cwd=None, python=sys.executable, options=()):
        self.dir = tempfile.mkdtemp(prefix="cellard-kernel-")
        for name in glob.glob(os.path.join(SOURCES, "*.py")):
            shutil.copy(name, self.dir)
        self.cwd = cwd or tempfile.mkdtemp(prefix="cellard-cells-")
        self._own_cwd = cwd is None
        dropped = {"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", *unset}
        self._env = {k: v for k, v in os.environ.items() if k not in dropped}
        self._env.update(env or {})
        self._argv = [python, "-X", "utf8", *options, os.path.join(self.dir, "launcher.py"), "-f"]
        self._readers = []
        self._raw = {1: bytearray(), 2: bytearray()}
        self._reading = threading.Lock()  # held over a read and the keeping of what it read
        self._starters = collections.deque()

    def __enter__(self):
        connection = os.path.join(self.dir, "connection.json")
        ports = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")
        where = os.path.join(self.dir, "s")
        write_connection_file(
            connection, transport="ipc", ip=where, key=b"k" * 32, **{p: i + 1 for i, p in enumerate(ports)}
        )
        self.process = subprocess.Popen(
            [*self._argv, connection], cwd=self.cwd, env=self._env, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for fd, pipe in ((1, self.process.stdout), (2, self.process.stderr)):
            reader = threading.Thread(target=self._read, args=(fd, pipe.fileno()), daemon=True)
            reader.start()
            self._readers.append(reader)
        try:
            self._connect(connection, where)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _connect(self, connection, where):
        end = time.monotonic() + LIMIT
        self.client = None
        while not all(os.path.exists(f"{where}-{i}") for i in range(1, 6)):
            self._alive(end)
            time.sleep(0.01)
        self.client = BlockingKernelClient(connection_file=connection)
        self.client.load_connection_file()
        self.client.start_channels(hb=False)
        replied = heard = False
        while not (replied and heard):
            self._alive(end)
            self.client.kernel_info()
            try:
                self.info = self.client.get_shell_msg(timeout=1)["content"]
                replied = True
                self.client.get_iopub_msg(timeout=0.1)
                heard = True
            except queue.Empty:
                continue

    def _alive(self, end):
        if self.process.poll() is not None:
            raise AssertionError(f"the kernel ended with {self.process.returncode}: {self._raw[2].decode()}")
        if time.monotonic() > end:
            raise AssertionError("the kernel hangs")

    def __exit__(self, *_):
        if self.client is not None:
            self.client.stop_channels()
        self.process.kill()
        self.process.wait()
        for reader in self._readers:
            reader.join(1)  # a child of a cell may still hold the pipe
        for pipe in (self.process.stdout, self.process.stderr):
            pipe.close()
        shutil.rmtree(self.dir, ignore_errors=True)
        if self._own_cwd:
            shutil.rmtree(self.cwd, ignore_errors=True)

    def _read(self, fd, source):
        while True:
            try:
                select.select([source], [], [])
                with self._reading:
                    data = os.read(source, 65536)
                    self._raw[fd] += data
            except (OSError, ValueError):
                return
            if not data:
                return

    def interrupt(self):
        """As the agent does: by another signal while SIGINT is ignored."""
        with open(f"/proc/{self.process.pid}/status") as status:
            ignored = int(re.search(r"SigIgn:\t(\w+)", status.read())[1], 16)
        os.kill(self.process.pid, 62 if ignored & 1 << signal.SIGINT - 1 else signal.SIGINT)

    def send(self, code, metadata=None, **content):
        """Send a cell; return its message id."""
        request = dict(
            code=code, silent=False, store_history=True, user_expressions={}, allow_stdin=False, stop_on_error=False
        )
        request.update(content)
        message = self.client.session.msg("execute_request", request, metadata=metadata)
        self.client.shell_channel.send(message)
        return message["header"]["msg_id"]

    def run(self, code, interrupt=(), on=None, **request):
        """Run a cell to its end: reply and idle.

        It is interrupted so many seconds after its busy; on(kind, content) is called
        with each of its iopub messages.
        """
        self._raw = {1: bytearray(), 2: bytearray()}
        me = self.send(code, **request)
        cell = Cell()
        end = time.monotonic() + LIMIT
        timers = [threading.Timer(after, self.interrupt) for after in interrupt]
        idle = False
        try:
            while not idle:
                self._alive(end)
                try:
                    message = self.client.get_iopub_msg(timeout=0.5)
                except queue.Empty:
                    continue
                kind, content = message["msg_type"], message["content"]
                if message["parent_header"].get("msg_id") != me:
                    if kind != "status":
                        cell.late.append((message["parent_header"].get("msg_id"), kind, content))
                    continue
                if kind == "status" and content["execution_state"] == "busy":
                    for timer in timers:
                        timer.start()
                idle = kind == "status" and content["execution_state"] == "idle"
                cell.messages.append((kind, content))
                if on is not None:
                    on(kind, content)
            while cell.reply is None:
                reply = self.client.get_shell_msg(timeout=LIMIT)
                if reply["parent_header"].get("msg_id") == me:
                    cell.reply = reply["content"]
        finally:
            for timer in timers:
                timer.cancel()
        cell.id = me
        self._drain()
        cell.raw = {fd: bytes(data).decode("utf-8", "replace") for fd, data in self._raw.items()}
        return cell

    def variables(self, interrupt=()):
        """The content of the kernel's variables_reply, and what came on iopub meanwhile."""
        message = self.client.session.msg("variables_request", {})
        me = message["header"]["msg_id"]
        timers = [threading.Timer(after, self.interrupt) for after in interrupt]
        for timer in timers:
            timer.start()
        self.client.shell_channel.send(message)
        reply = None
        while reply is None or reply["parent_header"].get("msg_id") != me:
            reply = self.client.get_shell_msg(timeout=LIMIT)
        seen = []
        while not seen or seen[-1] != ("status", {"execution_state": "idle"}):
            said = self.client.get_iopub_msg(timeout=LIMIT)
            if said["parent_header"].get("msg_id") == me:
                seen.append((said["msg_type"], said["content"]))
        for timer in timers:
            timer.cancel()
        return reply["content"], seen

    def _drain(self):
        """Wait until what is in the pipes has been read."""
        while True:
            with self._reading:
                if not any(self._left(pipe) for pipe in (self.process.stdout, self.process.stderr)):
                    return
            time.sleep(0.005)

    @staticmethod
    def _left(pipe):
        left = array.array("i", [0])
        fcntl.ioctl(pipe.fileno(), termios.FIONREAD, left)
        return left[0]

    def raw(self, fd):
        return bytes(self._raw[fd]).decode("utf-8", "replace")


class KernelTest(unittest.TestCase):
    """Tests of one class share a kernel; one that has ended is replaced."""

    kernel = None

    @classmethod
    def tearDownClass(cls):
        if cls.kernel is not None:
            cls.kernel.__exit__()
            cls.kernel = None

    def setUp(self):
        cls = type(self)
        if cls.kernel is not None and cls.kernel.process.poll() is not None:
            self.tearDownClass()
        if cls.kernel is None:
            cls.kernel = Kernel().__enter__()
            cls.kernel.run("import asyncio, os, sys, time")

    def run_ok(self, code, **kwargs):
        cell = self.kernel.run(code, **kwargs)
        self.assertEqual(cell.status, "ok", cell.reply)
        return cell

    def value(self, code):
        return self.run_ok(code).value
