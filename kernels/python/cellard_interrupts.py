"""SIGINT: stop the running cell, and nothing else.

One handler is there for the whole life of the kernel. It raises
KeyboardInterrupt where the cell's own code runs, cancels a cell that awaits,
and otherwise only remembers: an interrupt that hits the kernel's own work (a
traceback being made, a reply being sent) would lose the reply, and one that
comes when no cell runs is for nobody.

From the second SIGINT of a cell on it insists. Code that swallows
KeyboardInterrupt (`except: pass` in a loop) is interrupted again and again, and
traced: the exception is raised at its next line, which is inside the handler
that swallows and so outside of the `try`. A line where that didn't help is left
alone the next time, so that sooner or later it is raised at one from which it
escapes.
"""

import asyncio
import itertools
import os
import signal
import sys
import threading

# How long a cell has to come to an end by itself (a `finally` that saves
# something) after an interrupt that insists, in seconds.
GRACE = 0.1

# What is an interrupt, too: while SIGINT is ignored, as C's system() has its caller do for
# as long as the child runs, the agent sends this one. It is a real-time signal that nothing
# else uses, and a cell isn't shown the handler.
WHILE_IGNORED = 62


class Interrupts:
    def __init__(self, is_kernel_file, senders):
        """What the kernel's own files are, and the files whose code sends: tracing leaves it whole."""
        self._pid = os.getpid()
        self._main = threading.main_thread().ident
        self._is_kernel_file = is_kernel_file
        self._senders = senders
        # By id of the code object at which the user's code begins: how often entered.
        self._boundaries = {}
        self._theirs = None  # a SIGINT handler that a cell has set
        self._cell = None
        self._set_signal, self._get_signal = signal.signal, signal.getsignal
        self._handler = self._on_sigint  # one object, that can be compared by identity

    def install(self):
        self._set_signal(signal.SIGINT, self._handler)
        self._set_signal(WHILE_IGNORED, self._handler)
        # Libraries compare with this one to see that SIGINT has its default handler.
        signal.default_int_handler = self._handler
        signal.signal, signal.getsignal = self._signal, self._getsignal

    # What the kernel tells about itself.

    def begin(self):
        """A cell begins. The handler that an earlier one has set is forgotten."""
        self.end()
        self._theirs = None
        if self._get_signal(signal.SIGINT) is not self._handler:  # set past our signal.signal
            self._set_signal(signal.SIGINT, self._handler)
        if self._get_signal(WHILE_IGNORED) in _DEFAULTS:
            self._set_signal(WHILE_IGNORED, self._handler)
        self._cell = _Cell()

    def end(self):
        cell, self._cell = self._cell, None
        if cell is not None:
            cell.ended.set()
            cell.untrace()

    def code(self, code):
        """A context in which frames of this code object, and all above, are the user's."""
        return _Boundary(self._boundaries, code)

    def call(self, function, *args, **kwargs):
        """Call what may be interrupted though it isn't the cell's own code."""
        with self.code(_called.__code__):
            return _called(function, args, kwargs)

    def awaits(self, future):
        """The cell runs as a task: an interrupt where it awaits cancels it."""
        if self._cell is not None:
            self._cell.future = future
            self._cell.loop = asyncio.get_running_loop()
            self._cell.earlier = set(asyncio.all_tasks())

    def rest(self):
        """Stop tracing: what follows is the kernel's, a traceback above all."""
        if self._cell is not None:
            self._cell.untrace()

    def count(self):
        """How often the running cell has been interrupted."""
        return self._cell.count if self._cell is not None else 0

    def pending(self):
        """Whether an interrupt came that nobody has had yet; only once."""
        cell = self._cell
        if cell is None or not cell.pending:
            return False
        cell.pending = False
        return True

    # signal.signal and signal.getsignal as a cell sees them.

    def _signal(self, signum, handler):
        if signum != signal.SIGINT or os.getpid() != self._pid:
            before = self._set_signal(signum, handler)
            return signal.SIG_DFL if signum == WHILE_IGNORED and before is self._handler else before
        if threading.get_ident() != self._main or not (callable(handler) or handler in _DEFAULTS):
            return self._set_signal(signum, handler)  # raises what it should
        before = self._getsignal(signum)
        self._theirs = None if handler is self._handler else handler
        return before

    def _getsignal(self, signum):
        if signum == signal.SIGINT and self._theirs is not None and os.getpid() == self._pid:
            return self._theirs
        handler = self._get_signal(signum)
        return signal.SIG_DFL if signum == WHILE_IGNORED and handler is self._handler else handler

    # The handler.

    def _on_sigint(self, signum, frame):
        if os.getpid() != self._pid:  # in a forked child, that has our handler
            raise KeyboardInterrupt
        cell = self._cell
        if cell is None:
            # A task that an earlier cell has left in the loop may keep the kernel from
            # everything else.
            error, _ = self._user_frames(frame)
            if error is not None:
                raise error
            return
        cell.count += 1
        if cell.count == 1 and self._theirs is not None:
            if callable(self._theirs):
                self._theirs(int(signal.SIGINT), frame)
            return
        if cell.count == 2:
            threading.Thread(target=self._insist, args=(cell,), daemon=True, name="Interrupts").start()
        self._interrupt(cell, frame)

    def _insist(self, cell):
        while not cell.ended.wait(GRACE):
            cell.insisting = True
            # SIGINT may be ignored; the other may have become what ends the process.
            caught = self._get_signal(WHILE_IGNORED) is self._handler
            signal.pthread_kill(self._main, WHILE_IGNORED if caught else signal.SIGINT)

    def _interrupt(self, cell, frame):
        error, frames = self._user_frames(frame)
        if cell.insisting and frames:
            self._trace_frames(cell, frames)
        if error is KeyboardInterrupt:
            raise KeyboardInterrupt
        if cell.future is None:
            cell.pending = True
            return
        # call_soon_threadsafe, though this is the loop's own thread: a handler runs
        # while the loop sleeps in select, and only this wakes it (ipykernel's own
        # handler doesn't, so that an interrupted await goes on until something else
        # happens).
        cell.loop.call_soon_threadsafe(self._cancel, cell)
        if error is not None:
            raise error

    def _cancel(self, cell):
        if cell.future.done() or cell.ended.is_set():
            return
        tasks = [cell.future]
        if cell.insisting:
            tasks += [t for t in asyncio.all_tasks(cell.loop) if t not in cell.earlier and t is not cell.future]
            for task in tasks:
                self._trace_frames(cell, _await_chain(task))
        for task in tasks:
            task.cancel()

    def _user_frames(self, frame, spare=()):
        """What may be raised there, and the frames from there down to where the user's code begins.

        KeyboardInterrupt in the cell's own code; CancelledError in a task that a cell
        has made, where KeyboardInterrupt would end the kernel's loop; None elsewhere,
        and in the tasks to spare.
        """
        frames = []
        beyond = frame
        while beyond is not None:
            frames.append(beyond)
            if id(beyond.f_code) in self._boundaries:
                return KeyboardInterrupt, frames
            beyond = beyond.f_back
        try:
            task = asyncio.current_task()
            code = task.get_coro().cr_code
        except (RuntimeError, AttributeError):
            return None, []  # no loop, no task, or none of Python's
        if task in spare or self._is_kernel_file(code.co_filename):
            return None, []
        mine = itertools.takewhile(lambda f: not self._is_kernel_file(f.f_code.co_filename), frames)
        return asyncio.CancelledError, list(mine)

    # Tracing, once it insists.

    def _trace_frames(self, cell, frames):
        cell.trace(self._trace, self._retrace)
        for frame in frames:
            if not self._is_kernel_file(frame.f_code.co_filename):
                frame.f_trace = self._trace

    def _trace(self, frame, event, arg):
        cell = self._cell
        if cell is None or threading.get_ident() != self._main:
            return None
        if self._is_kernel_file(frame.f_code.co_filename):
            return None
        if event == "call":
            return self._trace if self._user_frames(frame, cell.earlier)[0] is not None else None
        place = (id(frame.f_code), frame.f_lasti)
        if event == "line" and place not in cell.tried:
            error, frames = self._user_frames(frame, cell.earlier)
            if error is not None and not any(f.f_code.co_filename in self._senders for f in frames):
                cell.tried.add(place)
                cell.raised = True
                raise error
        return self._trace

    def _retrace(self, frame, event, arg):
        # Python turns tracing off when the trace function raises, but not profiling:
        # this is called as the exception leaves a function, and turns it on again.
        cell = self._cell
        if cell is not None and cell.raised:
            cell.raised = False
            frames = self._user_frames(frame, cell.earlier)[1]
            if frames:
                self._trace_frames(cell, frames)


_DEFAULTS = (signal.SIG_DFL, signal.SIG_IGN)


def _called(function, args, kwargs):
    return function(*args, **kwargs)


def _await_chain(task):
    """The frames of a suspended task's coroutines, the outermost first."""
    awaited = task.get_coro()
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        if frame is not None:
            yield frame
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)


class _Boundary:
    """Counts a code object as a boundary for as long as it is entered."""

    def __init__(self, boundaries, code):
        self._boundaries = boundaries
        self._code = code  # kept, so that its id stays its own

    def __enter__(self):
        key = id(self._code)
        self._boundaries[key] = self._boundaries.get(key, 0) + 1

    def __exit__(self, *_):
        key = id(self._code)
        self._boundaries[key] -= 1
        if not self._boundaries[key]:
            del self._boundaries[key]


class _Cell:
    """What is known of the running cell."""

    def __init__(self):
        self.count = 0
        self.pending = False
        self.insisting = False
        self.raised = False
        self.ended = threading.Event()
        self.future = self.loop = None
        self.earlier = ()  # tasks that were there before
        self.tried = set()
        self._before = None

    def trace(self, trace, retrace):
        if self._before is None:
            self._before = (sys.gettrace(), sys.getprofile())
        sys.setprofile(retrace)
        sys.settrace(trace)

    def untrace(self):
        if self._before is not None:
            sys.settrace(self._before[0])
            sys.setprofile(self._before[1])
            self._before = None
