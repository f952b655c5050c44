"""What has to be done before a child process starts: send what was written before.

A child writes to the kernel's own descriptors, which the agent reads beside the
iopub messages; what the cell has printed has to be taken before it does. The
functions that start children are wrapped, and the one that writes to descriptors. (An
audit hook would see them all, but it is called at every event of the interpreter, and
makes each id() and each step of a deepcopy several times slower.)
"""

import functools
import os
import subprocess


def before_each(*actions):
    """Call the actions, in this order, before a child process is started."""

    def act(*_):
        for action in actions:
            action()

    _wrap(subprocess.Popen, "__init__", act)
    _wrap(os, "system", act)
    _wrap(os, "posix_spawn", act)
    _wrap(os, "posix_spawnp", act)
    # os.fork, os.forkpty, and what is made of them: os.spawn*, pty.spawn, multiprocessing.
    os.register_at_fork(before=act)


def before_writing(action):
    """Call the action before os.write writes to stdout's or stderr's descriptor."""

    def act(fd=None, *_):
        if fd == 1 or fd == 2:
            action()

    _wrap(os, "write", act)


def _wrap(owner, name, act):
    function = getattr(owner, name)

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        act(*args)
        return function(*args, **kwargs)

    if owner is os:  # where pickle is to find it
        wrapped.__module__ = "os"
    setattr(owner, name, wrapped)
