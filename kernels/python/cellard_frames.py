"""Whose frames are whose: the cell's, a library's, the kernel's own."""

import asyncio
import os
import sys

import IPython
import ipykernel
import jupyter_client
import tornado
import traitlets
import zmq

# How many frames of a long traceback are shown from either end. A recursion without
# an end has thousands, and IPython takes seconds over them.
ENDS = 20


def _directory(module):
    return os.path.dirname(os.path.abspath(module.__file__)) + os.sep


_OURS = _directory(sys.modules[__name__])
_KERNELS = (_OURS, _directory(IPython), _directory(ipykernel))
_MACHINERY = _KERNELS + tuple(map(_directory, (jupyter_client, tornado, traitlets, zmq, asyncio)))


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
