"""What has to be done before a child process starts: send what was written before.

A child writes to the kernel's own descriptors, which the agent reads beside the
iopub messages; what the cell has printed has to be out before it does. The
functions that start children are wrapped. (An audit hook would see them all, but
it is called at every event of the interpreter, and makes each id() and each step
of a deepcopy several times slower.)
"""

import functools
import os
import subprocess


def before_each(*actions):
    """Call the actions, in this order, before a child process is started."""

    def act():
        for action in actions:
            action()

    def wrap(owner, name):
        start = getattr(owner, name)

        @functools.wraps(start)
        def started(*args, **kwargs):
            act()
            return start(*args, **kwargs)

        if owner is os:  # where pickle is to find it
            started.__module__ = "os"
        setattr(owner, name, started)

    wrap(subprocess.Popen, "__init__")
    wrap(os, "system")
    wrap(os, "posix_spawn")
    wrap(os, "posix_spawnp")
    # os.fork, os.forkpty, and what is made of them: os.spawn*, pty.spawn, multiprocessing.
    os.register_at_fork(before=act)
