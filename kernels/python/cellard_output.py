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
import threading

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
        self._in_context = contextvars.ContextVar("cellard_parent")
        self._last = {}

    def set(self, parent):
        header = extract_header(parent)
        self._in_context.set(header)
        self._last = header

    def get(self):
        try:
            return self._in_context.get()
        except LookupError:
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


class Outbox:
    """Text on its way to the iopub thread, which sends it."""

    def __init__(self, session, pub_thread, parents):
        self.parents = parents
        self.child = False  # in a forked child there is no iopub thread
        self._session = session
        self._thread = pub_thread
        # A signal handler or a finalizer may write while the same thread holds it.
        self._lock = threading.RLock()
        self._items = collections.deque()
        self._waiting = 0
        self._timer = False
        self._hurried = False
        self._sent = threading.Event()
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self):
        self.child = True
        self._lock = threading.RLock()
        self._items.clear()

    def put(self, name, text):
        """Take text of a stream; wait while too much is waiting."""
        parent = self.parents.get()
        with self._lock:
            self._items.append((name, parent, text))
            self._waiting += len(text)
            waiting = self._waiting
            timer, self._timer = not self._timer, True
            hurry = waiting >= PIECE and not self._hurried
            if hurry:
                self._hurried = True
        if hurry:
            self._thread.schedule(self._send)
        elif timer:
            self._thread.schedule(self._send_later)
        if waiting > ROOM:
            self._wait_for_room()

    def post(self):
        """Send what there is, and nothing that is written later, before any message
        that is scheduled after this: a display, or clear_output, lies between them."""
        if self._waiting and not self.child:
            self._thread.schedule(functools.partial(self._send, self._mark()))

    def _mark(self):
        mark = object()
        with self._lock:
            self._items.append(mark)
        return mark

    def flush(self):
        """Send what there is, and return once it is on its way."""
        if self.child or not self._waiting:
            return
        done = threading.Event()
        mark = self._mark()

        def send():
            self._send(mark)
            done.set()

        self._thread.schedule(send)
        while not done.wait(1):
            if not self._thread.thread.is_alive():
                return

    def _wait_for_room(self):
        thread = self._thread.thread
        if threading.current_thread() is thread:
            return
        while self._waiting > ROOM and thread.is_alive():
            self._sent.clear()
            if not self._sent.wait(0.1):
                # An interrupt may have come between put's notes and its scheduling.
                self.post()

    def _send_later(self):
        # By way of the queue of the iopub thread, not straight from the timer: a
        # display that was scheduled before the text has to go out before it.
        self._thread.io_loop.call_later(PAUSE, self._thread.schedule, self._send)

    def _send(self, mark=None):
        """Send what waits before the mark; with none, before the first that is there."""
        with self._lock:
            items = self._take(mark)
            self._timer = self._hurried = False
        for name, parent, texts in _runs(items):
            for piece in _pieces(texts):
                try:
                    self._send_one(name, parent, piece)
                finally:
                    with self._lock:
                        self._waiting -= len(piece)
                    self._sent.set()
        with self._lock:
            # What was written after a mark has to find its own way.
            more = mark is not None and bool(self._items) and not self._timer
            self._timer = self._timer or more
        if more:
            self._send_later()

    def _take(self, mark):
        taken = []
        if mark is not None and mark not in self._items:
            return taken  # a later one's sending took it along
        while self._items:
            item = self._items[0]
            if isinstance(item, tuple):
                taken.append(self._items.popleft())
            elif mark is None:
                break  # what is scheduled for this one goes on from here
            elif self._items.popleft() is mark:
                break
        return taken

    def _send_one(self, name, parent, text):
        if self._thread.closed:
            return
        # This thread is the one that owns the socket; the check for a fork is in put.
        self._session.send(
            self._thread.socket,
            "stream",
            content={"name": name, "text": text},
            parent=parent,
            ident=b"stream." + name.encode(),
        )


def _runs(items):
    """Join neighbours of the same stream and parent: (name, parent, texts)."""
    runs = []
    for name, parent, text in items:
        if runs and runs[-1][0] == name and runs[-1][1] is parent:
            runs[-1][2].append(text)
        else:
            runs.append((name, parent, [text]))
    if len(runs) <= SWITCHES:
        return runs
    joined = {}
    for name, parent, texts in runs:
        key = (name, parent.get("msg_id"))
        joined.setdefault(key, (name, parent, []))[2].extend(texts)
    return list(joined.values())


def _pieces(texts):
    """Yield the texts, joined and cut, as strings of at most PIECE characters."""
    batch, size = [], 0
    for text in texts:
        if size + len(text) <= PIECE:
            batch.append(text)
            size += len(text)
            continue
        if batch:
            yield "".join(batch)
        begin = 0
        while len(text) - begin > PIECE:
            yield text[begin : begin + PIECE]
            begin += PIECE
        batch = [text[begin:]]
        size = len(text) - begin
    if size:
        yield "".join(batch)


class Stream(io.TextIOBase):
    """sys.stdout or sys.stderr. In a forked child it writes to the descriptor."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, outbox, name, fd):
        self._outbox = outbox
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
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if self._outbox.child:
            self._write_as_child(text)
        elif text:
            self._outbox.put(self.name, text)
        return len(text)

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
