"""The kernel: ipykernel's application, kernel and shell, with what cells need changed.

Works on ipykernel 6.17 to 7.4. Each change has its reason where it is made; the
larger ones have modules of their own.
"""

import asyncio
import builtins
import contextlib
import faulthandler
import logging
import os
import sys
import threading
import traceback
import warnings

import IPython
import ipykernel.iostream
import ipykernel.kernelapp
import ipykernel.zmqshell
import jupyter_client
import tornado
import traitlets
import zmq
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from ipykernel.zmqshell import ZMQDisplayPublisher, ZMQShellDisplayHook
from IPython.core.autocall import ZMQExitAutocall
from IPython.core.error import StdinNotImplementedError
from IPython.core.formatters import DisplayFormatter
from IPython.core.events import EventManager, available_events
from IPython.core.profiledir import ProfileDir
from IPython.utils.text import LSString, SList
from tornado.ioloop import IOLoop
from traitlets import Any, Instance, Type, default
from traitlets.config import Config
from traitlets.utils.importstring import import_item

import cellard_children
import cellard_commands
import cellard_files
import cellard_json
import cellard_output
import cellard_packages
import cellard_tables
import cellard_variables
from cellard_cells import Surroundings
from cellard_interrupts import Interrupts
from cellard_output import Outbox, Parents, PubThread, Stream, Taken

def _directory(module):
    return os.path.dirname(os.path.abspath(module.__file__)) + os.sep


_OURS = _directory(sys.modules[__name__])
_KERNELS = (_OURS, _directory(IPython), _directory(ipykernel))
_MACHINERY = _KERNELS + tuple(map(_directory, (jupyter_client, tornado, traitlets, zmq, asyncio)))


# How many displays may be on their way to the iopub thread before the cell waits.
AT_ONCE = 16

_GROUP = getattr(builtins, "BaseExceptionGroup", ())  # Python 3.11


def is_kernel_file(name):
    """Whether code of that file is the kernel's own, where an interrupt must not be raised."""
    return name.startswith(_MACHINERY)


def trim(trace):
    """Cut what is the kernel's own off the end of a traceback: how a cell's call was carried out."""
    last = None
    entry = trace
    while entry is not None:
        name = entry.tb_frame.f_code.co_filename
        if name.startswith(_OURS):
            break
        if not name.startswith(_KERNELS):
            last = entry
        entry = entry.tb_next
    if last is not None:
        last.tb_next = None
    return trace


# How many frames of a long traceback are shown from either end. A recursion without
# an end has thousands, and IPython takes seconds over them.
ENDS = 20


def shorten(trace):
    """Cut the middle out of a long traceback; return how many frames that were."""
    entries = []
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    left_out = max(0, len(entries) - 2 * ENDS)
    if left_out:
        entries[ENDS - 1].tb_next = entries[-ENDS]
    return left_out


def skip(trace):
    """A traceback from the cell's own code on."""
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_KERNELS):
        trace = trace.tb_next
    return trace


def trim_all(error):
    """Trim and shorten the traceback of an exception, and of those that led to it.

    Returns how many frames were cut out of their middles.
    """
    seen = set()
    left_out = 0
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        left_out += shorten(trim(error.__traceback__))
        error = error.__cause__ or error.__context__
    return left_out


def ends_well(error):
    """Whether an exception ends its cell as sys.exit() and sys.exit(0) end a script."""
    if not isinstance(error, SystemExit):
        return False
    code = SystemExit.code.__get__(error)  # a class of the cell's may have a property
    return code is None or type(code) in (int, bool) and not code


class Exiter(ZMQExitAutocall):
    """exit and quit: end the cell, as they end a script, and keep the session."""

    def __call__(self, code=None):
        raise SystemExit(code)


class Forgotten(dict):
    """A dict of lists that keeps nothing."""

    def __missing__(self, _):
        return []


class Shortened(dict):
    """A dict of texts that keeps the beginning of each."""

    def __setitem__(self, key, text):
        super().__setitem__(key, text if len(text) <= 10_000 else text[:10_000] + " …")


class Events(EventManager):
    """IPython's events, whose callbacks may be interrupted as a cell may."""

    def __init__(self, shell, events, interrupts):
        super().__init__(shell, events)
        self._interrupts = interrupts

    def trigger(self, event, *args, **kwargs):
        for function in self.callbacks[event][:]:
            try:
                self._interrupts.call(function, *args, **kwargs)
            except (Exception, KeyboardInterrupt):
                print(f"Error in callback {function} (for {event}):")
                self.shell.showtraceback()


class DisplayPublisher(ZMQDisplayPublisher):
    """Displays go out in order with the streams, and name the cell they belong to."""

    parents = Any()
    outbox = Any()
    _published = 0

    @property
    def parent_header(self):
        return self.parents.get() if self.parents is not None else {}

    @parent_header.setter
    def parent_header(self, _):
        """The parents know it already."""

    def set_parent(self, parent):
        """Likewise."""

    def _flush_streams(self):
        self.outbox.post()

    def publish(self, data, *args, **kwargs):
        if self.outbox.child:
            print(data.get("text/plain", ""))
            return
        super().publish(data, *args, **kwargs)
        self._settle()

    def clear_output(self, *args, **kwargs):
        super().clear_output(*args, **kwargs)
        self._settle()

    def _settle(self):
        self.outbox.told()
        self._published += 1
        if self._published % AT_ONCE == 0:
            self.outbox.settle()


class DisplayHook(ZMQShellDisplayHook):
    """The value of the last expression, named after its cell."""

    parents = Any()

    @property
    def parent_header(self):
        return self.parents.get() if self.parents is not None else {}

    @parent_header.setter
    def parent_header(self, _):
        """The parents know it already."""

    def set_parent(self, parent):
        """Likewise."""

    def compute_format_data(self, result):
        return self.shell.display_formatter.format_value(result)


class Formatter(DisplayFormatter):
    """IPython's, with tables, and with the file behind a path that is displayed."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        cellard_tables.register(self)

    def format(self, obj, include=None, exclude=None):
        if cellard_files.showable(obj):
            return cellard_files.bundle(obj), {}
        return super().format(obj, include=include, exclude=exclude)

    def format_value(self, obj):
        """A path that is merely the value of a cell is a path."""
        return super().format(obj)


# Libraries know a kernel that can show rich output by the name of this class.
class ZMQInteractiveShell(ipykernel.zmqshell.ZMQInteractiveShell):
    displayhook_class = Type(DisplayHook)
    display_pub_class = Type(DisplayPublisher)
    exiter = Instance(Exiter)
    _left_out = 0  # frames of the traceback that is being shown

    @default("exiter")
    def _default_exiter(self):
        return Exiter(self)

    @property
    def app(self):
        return self.kernel.parent

    def init_events(self):
        super().init_events()
        callbacks = self.events.callbacks
        self.events = Events(self, available_events, self.app.interrupts)
        self.events.callbacks = callbacks

    def init_ipython_dir(self, ipython_dir):
        self.ipython_dir = self.app.ipython_dir

    def init_history(self):
        super().init_history()
        # IPython keeps the text of each value, for %history -o, and from 9 on all that a
        # session has ever printed and shown, for %notebook, which writes the inputs alone
        # then, as before 9. The values themselves, _ and Out, are the user's.
        self.history_manager.output_hist_reprs = Shortened()
        self.history_manager.outputs = Forgotten()

    @contextlib.contextmanager
    def _tee(self, channel):
        """IPython 9 would keep a copy of each write here."""
        yield

    def init_display_formatter(self):
        self.display_formatter = Formatter(parent=self)
        self.configurables.append(self.display_formatter)

    def init_builtins(self):
        super().init_builtins()
        builtins.display_file = cellard_files.display_file

    def init_environment(self):
        # ipykernel's own asks every child for colours. Output goes to pipes here.
        os.environ.setdefault("PAGER", "cat")
        os.environ.setdefault("GIT_PAGER", "cat")

    def init_magics(self):
        super().init_magics()
        self.register_magics(cellard_commands.Scripts)

    def ask_exit(self):
        """Nothing a cell does ends the kernel."""

    async def run_code(self, code_obj, result=None, *, async_=False):
        interrupts = self.app.interrupts
        if interrupts.pending():
            error = KeyboardInterrupt()
            if result is not None:
                result.error_in_exec = error
            self.showtraceback((KeyboardInterrupt, error, None))
            return True
        with interrupts.code(code_obj):
            failed = await super().run_code(code_obj, result, async_=async_)
        if failed and result is not None:
            error = result.error_in_exec
            if ends_well(error):
                result.error_in_exec = None
            elif isinstance(error, asyncio.CancelledError) and interrupts.count():
                result.error_in_exec = KeyboardInterrupt()
        return failed

    def showtraceback(self, exc_tuple=None, *args, **kwargs):
        self.app.interrupts.rest()
        kind, error, trace = exc_tuple or sys.exc_info()
        if ends_well(error):
            return
        if isinstance(error, asyncio.CancelledError) and self.app.interrupts.count():
            # How it was stopped is no matter of the cell's.
            kind, error = KeyboardInterrupt, KeyboardInterrupt()
        self._left_out = trim_all(error)
        if trace is not getattr(error, "__traceback__", None):
            self._left_out += shorten(trim(trace))
        try:
            if isinstance(error, _GROUP):
                # IPython shows no more than the group itself, or prints it (IPython 9).
                self._showtraceback(kind, error, traceback.format_exception(kind, error, skip(trace)))
            else:
                super().showtraceback((kind, error, trace), *args, **kwargs)
        finally:
            self._left_out = 0

    def _showtraceback(self, etype, evalue, stb):
        if self._left_out:
            stb = [*stb[:-1], f"[{self._left_out} frames in the middle are left out]\n", *stb[-1:]]
        if self.app.outbox.child:
            print("\n".join(stb), file=sys.stderr)
        else:
            super()._showtraceback(etype, evalue, stb)

    def system(self, command):
        """!command"""
        status, _ = cellard_commands.run(self.var_expand(command, depth=1), shell=True)
        self.user_ns["_exit_code"] = status

    system_piped = system_raw = system

    def getoutput(self, command, split=True, depth=0):
        """x = !command"""
        command = self.var_expand(command, depth=depth + 1)
        if command.rstrip().endswith("&"):
            raise OSError("a background command has no output to give: run it without &")
        status, output = cellard_commands.run(command, shell=True, capture=True)
        self.user_ns["_exit_code"] = status
        text = output.decode("utf-8", "replace")
        return SList(text.splitlines()) if split else LSString(text)


class Kernel(IPythonKernel):
    shell_class = Type(ZMQInteractiveShell)
    _execute_sleep = 0  # ipykernel's guess at a pause before the reply: nothing here needs it
    msg_types = [*IPythonKernel.msg_types, "variables_request"]

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self._question = threading.Lock()
        self._cells = 0  # that have ended

    @property
    def interrupts(self):
        return self.parent.interrupts

    def set_parent(self, ident, parent, channel="shell"):
        if channel == "shell":
            self.parent.parents.set(parent)
            if parent["header"]["msg_type"] == "execute_request":
                # Before it is told to be busy: an interrupt may follow at once.
                self.interrupts.begin()
        super().set_parent(ident, parent, channel)

    # The one SIGINT handler stays; see cellard_interrupts.

    def pre_handler_hook(self):
        """ipykernel sets SIGINT's handler here."""

    def post_handler_hook(self):
        """And sets it back here."""

    @contextlib.contextmanager
    def _cancel_on_sigint(self, future):
        self.interrupts.awaits(future)
        yield

    async def do_execute(self, code, silent, store_history=True, user_expressions=None, allow_stdin=False, **kwargs):
        surroundings = Surroundings(self.get_parent("shell").get("metadata"))
        cellard_packages.refresh()
        reply = None
        try:
            try:
                surroundings.enter()
            except (OSError, ValueError) as error:
                return self._failure(error, store_history and not silent)
            with self.interrupts.code(type(self.shell).user_expressions.__code__):
                reply = await super().do_execute(
                    code, silent, store_history, user_expressions, allow_stdin, **kwargs
                )
            return reply
        except BaseException as error:
            # A cell can cancel the task that it runs in, and that mustn't cost its reply.
            return self._failure(error, False)
        finally:
            if self.parent.outbox.child:
                self.parent.leave_child(0 if reply and reply["status"] == "ok" else 1)
            self._cells += 1
            self.interrupts.end()
            surroundings.leave()
            self.parent.mend_streams()

    @property
    def kernel_info(self):
        info = super().kernel_info
        info["supported_features"] = [*info.get("supported_features", ()), cellard_variables.FEATURE]
        return info

    async def variables_request(self, stream, ident, parent):
        """The session's variables: see cellard_variables. It is no cell."""
        # Whatever goes wrong, there is a reply.
        try:
            content = self.interrupts.call(cellard_variables.reply, self.shell)
        except BaseException as error:
            content = {"status": "error", "ename": type(error).__name__, "evalue": str(error), "traceback": []}
        self.session.send(stream, "variables_reply", content, parent, ident)

    def raw_input(self, prompt=""):
        if not self._allow_stdin:
            self._nobody_answers(prompt)
        return super().raw_input(prompt)

    def getpass(self, prompt="", *args, **kwargs):
        if not self._allow_stdin:
            self._nobody_answers(prompt)
        return super().getpass(prompt, *args, **kwargs)

    def _nobody_answers(self, prompt):
        """Show what the cell asks, and say how it could have an answer."""
        with contextlib.suppress(Exception):  # stdout may be the cell's own
            print(prompt, end="", flush=True)
        raise StdinNotImplementedError(
            'the cell asked for input and has no answers; send them in "stdin", or "live"'
        )

    def _input_request(self, prompt, ident, parent, password=False):
        """Ask the agent. ipykernel's own breaks when two threads ask at once, which
        aborts the process, and waits for ever when the cell of a thread has ended."""
        cells = self._cells
        with self._question:
            with contextlib.suppress(Exception):  # they may be the cell's own
                sys.stderr.flush()
                sys.stdout.flush()
            while self.session.recv(self.stdin_socket)[1] is not None:
                """An answer that came too late for its question."""
            content = {"prompt": prompt, "password": password}
            self.session.send(self.stdin_socket, "input_request", content, parent, ident=ident)
            reply = None
            while reply is None:
                if self._cells != cells:
                    raise StdinNotImplementedError("the cell has ended: nobody answers any more")
                if self.stdin_socket.poll(10):  # milliseconds: signals are handled in between
                    reply = self.session.recv(self.stdin_socket)[1]
        value = reply["content"].get("value", "")
        if value == "\x04":
            raise EOFError
        return value

    def _failure(self, error, count):
        """The reply of a cell whose code did not run, or not as IPython runs it."""
        name, value = type(error).__name__, str(error)
        self.shell._showtraceback(type(error), error, [f"{name}: {value}"])
        number = self.shell.execution_count
        if count:
            self.shell.execution_count += 1
        return {
            "status": "error",
            "ename": name,
            "evalue": value,
            "traceback": [f"{name}: {value}"],
            "execution_count": number,
            "user_expressions": {},
            "payload": [],
        }

    async def dispatch_queue(self):
        # ipykernel 6's own loop over messages: a cell that cancels all tasks of the
        # loop must not end it.
        while True:
            try:
                await super().dispatch_queue()
            except asyncio.CancelledError:
                continue


class App(IPKernelApp):
    kernel_class = Type(Kernel)
    interrupts = Any()
    parents = Any()
    outbox = Any()

    def init_crash_handler(self):
        super().init_crash_handler()
        faulthandler.enable(file=sys.__stderr__, all_threads=False)

    def init_profile_dir(self):
        # A directory of this kernel's own: what some user's ~/.ipython holds must not
        # matter, and there may be no home that can be written.
        self.profile_dir = ProfileDir(location=self.ipython_dir)

    def write_connection_file(self, **_):
        """The agent has written it; ipykernel 6 would empty it for a moment."""

    def log_connection_info(self):
        """Only noted: ipykernel's own prints advice for a terminal."""
        names = ("shell", "iopub", "stdin", "hb", "control")
        self._ports = {name: getattr(self, name + "_port") for name in names}

    def init_poller(self):
        """The agent sees to it that the kernel doesn't outlive it."""

    def _bind_socket(self, s, port):
        if s is self.iopub_socket:
            # By default a PUB socket drops what a reader can't take in time. This one
            # waits, and then the writer in the cell does (cellard_output). So many
            # messages it holds; each may be large.
            s.setsockopt(zmq.XPUB_NODROP, 1)
            s.setsockopt(zmq.SNDHWM, 64)
        return super()._bind_socket(s, port)

    def init_io(self):
        self.parents = Parents()
        self.parents.follow_threads()
        self.session.pack = cellard_json.pack
        taken = Taken(os.path.join(os.path.dirname(self.ipython_dir), "taken"))
        self.outbox = Outbox(self.session, self.iopub_thread, self.parents, taken)
        self.streams = {
            "stdout": Stream(self.outbox, "stdout", 1),
            "stderr": Stream(self.outbox, "stderr", 2),
        }
        sys.stdout, sys.stderr = self.streams["stdout"], self.streams["stderr"]
        self._c_library = _c_library()
        with contextlib.suppress(AttributeError, ValueError):  # what is written to it arrives
            sys.__stdout__.reconfigure(line_buffering=True)
        self.displayhook = import_item(str(self.displayhook_class))(self.session, self.iopub_socket)
        sys.displayhook = self.displayhook
        late = cellard_packages.LateFinder()
        sys.meta_path.append(late)
        cellard_children.before_each(late.expect, self.outbox.part)
        cellard_children.before_writing(self.outbox.part)

    def mend_streams(self):
        """Put the streams back if a cell left one that can't be written.

        A file that a cell set as sys.stdout and closed would fail each reply.
        """
        for name, stream in self.streams.items():
            try:
                getattr(sys, name).flush()
            except Exception:
                setattr(sys, name, stream)
        with contextlib.suppress(Exception):
            sys.__stdout__.flush()
        if self._c_library is not None:
            self._c_library.fflush(None)
        self.outbox.flush()

    def leave_child(self, status):
        """End a forked child that came to the end of the cell: there is one kernel."""
        for stream in self.streams.values():
            stream.flush()
        os._exit(status)

    def init_iopub(self, context):
        ipykernel.kernelapp.IOPubThread = PubThread
        super().init_iopub(context)

    def init_signal(self):
        self.interrupts.install()

    def init_kernel(self):
        super().init_kernel()
        shell = self.kernel.shell
        shell.display_pub.parents = shell.displayhook.parents = self.parents
        shell.display_pub.outbox = self.outbox

    def init_path(self):
        """Only at hand_over: the path is the kernel's own as long as it starts."""

    def hand_over(self):
        """What comes last before cells: the path and the warnings are theirs now."""
        super().init_path()  # the current directory, after the standard library
        # A kernel always has threads, and none of them is a cell's doing (Python 3.12).
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        # IPython's advice on sys.exit, for a terminal.
        warnings.filterwarnings("ignore", "To exit: use")

    def start(self):
        self.kernel.start()
        while not self.kernel.shell.exit_now:  # a cell may stop the loop: only shutdown ends it
            try:
                self.io_loop.start()
            except (KeyboardInterrupt, SystemExit):
                # Of a task that a cell has left in the loop.
                continue


def _c_library():
    """The C library, whose own buffer of stdout has to be flushed; None without ctypes."""
    try:
        import ctypes

        return ctypes.CDLL(None)
    except (ImportError, OSError):
        return None


def configuration(directory):
    config = Config()
    config.IPKernelApp.ipython_dir = directory
    config.IPKernelApp.log_level = logging.ERROR
    config.IPKernelApp.parent_handle = 0
    config.IPKernelApp.exec_PYTHONSTARTUP = False
    config.InteractiveShell.colors = "nocolor" if IPython.version_info >= (9,) else "NoColor"
    config.HistoryManager.enabled = False
    config.IPCompleter.use_jedi = False
    return config


def make(argv, directory):
    """The kernel, ready to start."""
    cellard_packages.allow_pip()
    app = App.instance(config=configuration(os.path.join(directory, "ipython")))
    app.interrupts = Interrupts(is_kernel_file, {cellard_output.__file__, ipykernel.iostream.__file__})
    app.initialize(argv)
    app.io_loop = IOLoop.current()
    return app
