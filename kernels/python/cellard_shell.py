"""The shell that runs a cell's code: IPython's, as ipykernel has it, with what cells need changed."""

import asyncio
import builtins
import os
import sys
import traceback

import ipykernel.zmqshell
from ipykernel.zmqshell import ZMQDisplayPublisher, ZMQShellDisplayHook
from IPython.core.autocall import ZMQExitAutocall
from IPython.core.events import EventManager, available_events
from IPython.core.formatters import DisplayFormatter
from IPython.utils.text import LSString, SList
from traitlets import Any, Instance, Type, default

import cellard_commands
import cellard_files
import cellard_tables
from cellard_frames import shorten, skip, trim, trim_all

GROUP = getattr(builtins, "BaseExceptionGroup", ())  # Python 3.11


class CellExit(SystemExit):
    """Raised by exit() and quit(): ends the cell and leaves the kernel as it is."""


class Exiter(ZMQExitAutocall):
    """exit and quit: end the cell, as they end a script, and keep the session."""

    def __call__(self, code=None):
        raise SystemExit(code) if code else CellExit


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
        else:
            super().publish(data, *args, **kwargs)


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
            if isinstance(error, CellExit):
                result.error_in_exec = None
            elif isinstance(error, asyncio.CancelledError) and interrupts.interrupted():
                result.error_in_exec = KeyboardInterrupt()
        return failed

    def showtraceback(self, exc_tuple=None, *args, **kwargs):
        self.app.interrupts.rest()
        kind, error, trace = exc_tuple or sys.exc_info()
        if isinstance(error, CellExit):
            return
        if isinstance(error, asyncio.CancelledError) and self.app.interrupts.interrupted():
            # How it was stopped is no matter of the cell's.
            kind, error = KeyboardInterrupt, KeyboardInterrupt()
        self._left_out = trim_all(error)
        if trace is not getattr(error, "__traceback__", None):
            self._left_out += shorten(trim(trace))
        try:
            if isinstance(error, GROUP):
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
