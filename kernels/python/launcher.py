"""Starts the Python kernel: python3 -X utf8 launcher.py -f CONNECTION_FILE

The modules beside it are its parts; cellard_kernel.py is where to begin.
"""

import _signal
import os
import sys

# Until the kernel has a handler of its own: an interrupt must not end it.
_signal.signal(_signal.SIGINT, _signal.SIG_IGN)

# What the kernel itself imports, the standard library included, must not come from
# a directory of the cells': a random.py or signal.py there is for their own imports.
# What is imported above is there before any directory is looked at.
_HERE = os.path.dirname(os.path.abspath(__file__))
_THEIRS = {os.path.abspath(p) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep)}
_PATH = [p for p in sys.path if os.path.abspath(p) != _HERE]
sys.path[:] = [_HERE, *(p for p in _PATH if p not in _THEIRS), *(p for p in _PATH if p in _THEIRS)]

import importlib
import types
import warnings

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
    write, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    warnings.simplefilter("ignore")  # the kernel's own are nothing that a cell could mend
    quiet = warnings.filters[0]
    hide()
    import cellard_kernel

    kernel = cellard_kernel.make(sys.argv[1:], _HERE)
    unhide()
    sys.dont_write_bytecode = write
    sys.path[:] = _PATH
    warnings.filters.remove(quiet)
    sys.argv = [""]  # as of an interactive Python: a script in a cell may parse it
    kernel.hand_over()
    kernel.start()


if __name__ == "__main__":
    run()
