"""sys.stdout and sys.stderr of the kernel: what is written goes out on iopub.

Each byte has one path. Text that Python code writes to sys.stdout and
sys.stderr goes out as stream messages; file descriptors 1 and 2 stay the
process's own pipes, which the agent reads, and carry what children, C
libraries and faulthandler write. ipykernel's own OutStream copies the
descriptors to iopub as well, and loses output in doing so, so it is replaced.

Both streams share one Outbox, which keeps the order in which they were
written, and bounds what waits: a long text leaves as many messages, and a
writer that is faster than the reader waits.
"""

import codecs
import collections
import contextvars
import functools
import io
import os
import struct
import threading
import time

from ipykernel.iostream import IOPubThread
from jupyter_client.session import extract_header

# The longest text of one message, in characters. UTF-8 makes at most four
# bytes of each.
PIECE = 64 * 1024
# How many characters may wait for the iopub thread before a writer has to wait.
ROOM = 4 * 1024 * 1024
# How long text waits for more to go with it, in seconds.
PAUSE = 0.05
# Up to so many switches between the streams keep their order in one sending;
# beyond it each stream's text is joined, or a loop that writes to both in turn
# would be a message a line.
SWITCHES = 256


class Parents:
    """Which cell does the running code belong to?

    The header of the request that messages name as their parent. A task knows
    it by its context, a thread by the thread that started it; anything else,
    threads of a pool above all, belongs to the cell that runs now.
    """

    def __init__(self):
        self.context = contextvars.ContextVar("cellard_parent", default=None)
        self._last = {}

    def set(self, parent):
        header = extract_header(parent)
        self.context.set(header)
        self._last = header

    def get(self):
        header = self.context.get()
        if header is not None:
            return header
        return getattr(threading.current_thread(), "_cellard_parent", self._last)

    def follow_threads(self):
        """Let a thread keep the parent of the cell that started it."""
        start = threading.Thread.start
        # A pool's worker outlives the cell that it was started by, and works for
        # others.
        pools = ("concurrent.futures.thread", "multiprocessing.pool")

        def start_with_parent(thread):
            target = getattr(thread, "_target", None)
            if getattr(target, "__module__", None) not in pools:
                thread._cellard_parent = self.get()
            return start(thread)

        start_with_parent.__wrapped__ = start
        threading.Thread.start = start_with_parent


class PubThread(IOPubThread):
    """ipykernel's iopub thread, without its port on the loopback for forked children."""

    def _setup_pipe_in(self):
        self._pipe_flag = False  # a child writes to the descriptors (Outbox)


class Taken:
    """What the agent has taken of the messages.

    It reads the descriptors beside the messages. Whoever is about to have something
    written there asks by a message, and waits until its number is in the file by which
    the agent answers: so what was sent before comes before it.
    """

    # In seconds: how long an answer is waited for, and how long at least and at most
    # until the file is looked at again.
    PATIENCE = 5
    PAUSES = 0.00005, 0.002

    def __init__(self, path):
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._fd = None  # another front end than the agent
        # Held by the one thread that waits; a handler that interrupts it may ask as well.
        self._lock = threading.RLock()
        self._number = 0
        # Whether something was sent since the last question.
        self.due = False

    def forked(self):
        self._fd = None
        self._lock = threading.RLock()

    def wait(self, ask):
        """If something was sent since the last question, call ask with a number, and
        return when that, or a later one, was answered."""
        with self._lock:
            if not self.due or self._fd is None:
                return
            self.due = False
            self._number += 1
            number = self._number
            ask(number)
            pause, most = self.PAUSES
            end = time.monotonic() + self.PATIENCE
            while self._answered() < number and time.monotonic() < end:
                time.sleep(pause)
                pause = min(2 * pause, most)

    def _answered(self):
        try:
            return struct.unpack("<I", os.pread(self._fd, 4, 0))[0]
        except (OSError, TypeError, struct.error):  # a cell has closed it, or cut it
            self._fd = None
            return self._number


class Outbox:
    """Text on its way to the iopub thread, which sends it.

    In a forked child nothing is sent: the sockets are the kernel's. What is written
    there goes to the descriptors.
    """

    def __init__(self, session, pub_thread, parents, taken):
        self.parents = parents
        self.child = False
        self._taken = taken
        self._session = session
        self._thread = pub_thread
        # A signal handler or a finalizer may write while the same thread holds it.
        self.lock = threading.RLock()
        # Under the lock: what waits, as runs of texts of one stream and one parent; how
        # many characters that and what is being sent have; from how many on a writer
        # has more to do than to add to them.
        self._runs = []
        self.name = self.parent = self.texts = None  # the last run's
        self.waiting = 0
        self.calm = 0
        # What a post or a flush has set apart, numbered: it goes out before the message
        # that comes next, and what is written after it doesn't.
        self._sealed = collections.deque()
        self._seals = 0
        self._sent = threading.Event()
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self):
        self.child = True
        self._taken.forked()
        self.lock = threading.RLock()
        self._take()
        self._sealed.clear()
        self._session.send = lambda *args, **kwargs: None

    def run(self, name, parent):
        """Begin a run. Called with the lock."""
        self.name, self.parent, self.texts = name, parent, []
        self._runs.append((name, parent, self.texts))

    def _take(self):
        runs, self._runs = self._runs, []
        self.name = self.parent = self.texts = None
        self.calm = 0
        return runs

    def stir(self):
        """What a writer does that finds as much as calm waiting."""
        with self.lock:
            urgent, scheduled = self.waiting >= PIECE, self.calm == ROOM
            self.calm = ROOM if urgent else PIECE
        if urgent and not scheduled:
            self._thread.schedule(self._send)
        elif not urgent:
            self._thread.schedule(self._send_later)
        if self.waiting > ROOM:
            self._wait_for_room()

    def post(self):
        """Send what there is, and nothing that is written later, before any message
        that is scheduled after this: a display, or clear_output, lies between them."""
        if self.waiting and not self.child:
            self._thread.schedule(functools.partial(self._send_sealed, self._seal()))

    def _seal(self):
        with self.lock:
            self._seals += 1
            self._sealed.append((self._seals, self._take()))
            return self._seals

    def flush(self):
        """Send what there is, and return once it is on its way."""
        if self.waiting and not self.child:
            self._through(functools.partial(self._send_sealed, self._seal()))

    def part(self):
        """Return once what there is was taken: what is written to the descriptors from
        now on comes after it."""
        self.flush()
        if not self.child:
            self._taken.wait(self._ask_taken)

    def told(self):
        """Something was sent that is no text."""
        self._taken.due = True

    def _ask_taken(self, number):
        self._through(functools.partial(self._send_message, "taken_request", {"number": number}, self.parents.get()))

    def settle(self):
        """Return once every message that was scheduled before is on its way.

        A cell that shows faster than the reader takes waits here; else all that it
        shows would be held in memory.
        """
        if not self.child:
            self._through(lambda: None)

    def _through(self, action):
        """Have the iopub thread act, after all that was scheduled before, and wait for it."""
        if threading.current_thread() is self._thread.thread:
            action()
            return
        done = threading.Lock()
        done.acquire()

        def act():
            action()
            done.release()

        self._thread.schedule(act)
        while not done.acquire(timeout=1):
            if not self._thread.thread.is_alive():
                return

    def _wait_for_room(self):
        thread = self._thread.thread
        if threading.current_thread() is thread:
            return
        while self.waiting > ROOM and thread.is_alive():
            self._sent.clear()
            if not self._sent.wait(0.1):
                # An interrupt may have come between a writer's notes and its scheduling.
                self.post()

    def _send_later(self):
        # By way of the queue of the iopub thread, not straight from the timer: a
        # display that was scheduled before the text has to go out before it.
        self._thread.io_loop.call_later(PAUSE, self._thread.schedule, self._send)

    def _send_sealed(self, number):
        while True:
            with self.lock:
                if not self._sealed or self._sealed[0][0] > number:
                    return
                _, runs = self._sealed.popleft()
            self._send_runs(runs)

    def _send(self):
        with self.lock:
            if self._sealed:
                # It was scheduled for what is sealed. Whoever wrote since then has
                # scheduled another, behind the message in between.
                return
            runs = self._take()
        self._send_runs(runs)

    def _send_runs(self, runs):
        for name, parent, texts in runs if len(runs) <= SWITCHES else _joined(runs):
            for piece in _pieces(texts):
                try:
                    self._send_one(name, parent, piece)
                finally:
                    with self.lock:
                        self.waiting -= len(piece)
                    self._sent.set()

    def _send_one(self, name, parent, text):
        self._taken.due = True
        self._send_message("stream", {"name": name, "text": text}, parent, b"stream." + name.encode())

    def _send_message(self, kind, content, parent, ident=None):
        if self._thread.closed:
            return
        # This thread is the one that owns the socket; the check for a fork is in put.
        self._session.send(self._thread.socket, kind, content=content, parent=parent, ident=ident)


def _pieces(texts):
    """Yield the texts, joined and cut, as strings of at most PIECE characters.

    A long text is cut where it is, and not first copied to be joined with others.
    """
    short = []
    for text in texts:
        if len(text) < PIECE:
            short.append(text)
            continue
        yield from _cut("".join(short))
        short = []
        yield from _cut(text)
    yield from _cut("".join(short))


def _cut(text):
    for begin in range(0, len(text), PIECE):
        yield text[begin : begin + PIECE]


def _joined(runs):
    """The runs of each stream and parent as one, in the order of their beginnings."""
    joined = {}
    for name, parent, texts in runs:
        joined.setdefault((name, id(parent)), (name, parent, []))[2].extend(texts)
    return joined.values()


class Stream(io.TextIOBase):
    """sys.stdout or sys.stderr. In a forked child it writes to the descriptor."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, outbox, name, fd):
        self._outbox = outbox
        self._parent = outbox.parents.context.get
        self._fd = fd
        self._line = ""  # of a forked child: what has no newline yet
        self.name = name
        self.buffer = _Bytes(self)

    @property
    def parent_header(self):
        return self._outbox.parents.get()

    def set_parent(self, parent):
        self._outbox.parents.set(parent)

    def write(self, text):
        # The way of every print: no call that isn't needed.
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        outbox = self._outbox
        if outbox.child:
            self._write_as_child(text)
            return len(text)
        parent = self._parent() or outbox.parents.get()
        size = len(text)
        with outbox.lock:
            if outbox.parent is not parent or outbox.name is not self.name:
                outbox.run(self.name, parent)
            outbox.texts.append(text)
            outbox.waiting += size
            calm = outbox.waiting < outbox.calm
        if not calm:
            outbox.stir()
        return size

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def flush(self):
        if self._outbox.child:
            self._write_as_child("", whole=True)
        else:
            self._outbox.flush()

    def _write_as_child(self, text, whole=False):
        # Whole lines, so that those of several children don't run into each other.
        text, self._line = self._line + text, ""
        if not whole:
            end = text.rfind("\n") + 1
            text, self._line = text[:end], text[end:]
        data = text.encode(self.encoding, self.errors)
        while data:
            data = data[os.write(self._fd, data) :]

    def fileno(self):
        """The process's own descriptor: what a child inherits."""
        return self._fd

    def isatty(self):
        return False

    def writable(self):
        return True

    def reconfigure(self, **_):
        """Accepted, as of a text file: a script may call it."""

    def close(self):
        """Only flushed: the kernel can't be without it."""
        self.flush()


class _Bytes(io.RawIOBase):
    """The stream's `buffer`: bytes are decoded as UTF-8."""

    def __init__(self, stream):
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self):
        return True

    def write(self, data):
        data = bytes(data)
        self._stream.write(self._decoder.decode(data))
        return len(data)

    def flush(self):
        self._stream.flush()

    def fileno(self):
        return self._stream.fileno()
