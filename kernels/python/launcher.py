"""Starts the Python kernel: python3 -X utf8 launcher.py -f CONNECTION_FILE

The modules beside it are its parts; cellard_kernel.py is where to begin.
"""

import signal

# Until the kernel has its own handler, and so that an interrupt can't end it.
signal.signal(signal.SIGINT, signal.SIG_IGN)

import importlib
import os
import sys
import types

# What IPython and ipykernel import at their start if it is there, though a kernel
# has no use for it: a debugger, a static analyser. And a whole terminal's user
# interface, for IPython.embed; it takes a third of the time of the start.
_OPTIONAL = ("debugpy", "jedi")
_TERMINAL = "IPython.terminal.embed"


def _embed(*args, **kwargs):
    return importlib.import_module(_TERMINAL).embed(*args, **kwargs)


def hide():
    sys.modules.update(dict.fromkeys(_OPTIONAL))
    terminal = sys.modules[_TERMINAL] = types.ModuleType(_TERMINAL)
    terminal.embed = _embed


def unhide():
    for name in (*_OPTIONAL, _TERMINAL):
        del sys.modules[name]


def run():
    here = os.path.dirname(os.path.abspath(__file__))
    path = sys.path[:]
    if path and os.path.abspath(path[0]) == here:
        del path[0]
    # What the kernel itself needs must not come from a directory of the cells': a
    # random.py or email.py there is for their own imports.
    theirs = {os.path.abspath(p) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep)}
    sys.path[:] = [here, *(p for p in path if p not in theirs), *(p for p in path if p in theirs)]
    write, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    hide()
    import cellard_kernel

    kernel = cellard_kernel.make(sys.argv[1:], here)
    unhide()
    sys.dont_write_bytecode = write
    # IPython has put the current directory into the path, after the standard library.
    sys.path[:] = [p for p in sys.path if p != here and p in path or p == ""]
    sys.argv = [""]  # as of an interactive Python: a script in a cell may parse it
    kernel.start()


if __name__ == "__main__":
    run()
