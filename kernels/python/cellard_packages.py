"""Packages that come while the kernel runs, from pip in a cell above all."""

import importlib
import importlib.machinery
import os
import site
import sys
import sysconfig


def allow_pip():
    """Let pip install into a system's own Python, where that is what cells run on.

    Debian and others mark it as externally managed (PEP 668). The sandbox is the
    cells' own, so there is nothing to protect.
    """
    if sys.prefix != sys.base_prefix:
        return
    marker = os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
    if os.path.exists(marker):
        os.environ.setdefault("PIP_BREAK_SYSTEM_PACKAGES", "1")


def refresh():
    """See what has been installed by now.

    The import system remembers what is in a directory by its modification time,
    which is too coarse for a package that came a moment ago; and a directory of
    the user's own packages that was made after the start is not on sys.path.
    """
    importlib.invalidate_caches()
    if site.ENABLE_USER_SITE:
        directory = site.getusersitepackages()
        if directory not in sys.path and os.path.isdir(directory):
            site.addsitedir(directory)


class LateFinder:
    """The last finder: looks again if a child process has run since the last look.

    So a package that one line installs, by whatever command, imports in the next.
    """

    def __init__(self):
        self._stale = False

    def expect(self):
        """A child process starts, that may install something."""
        self._stale = True

    def find_spec(self, name, path=None, target=None):
        if not self._stale:
            return None
        self._stale = False
        refresh()
        return importlib.machinery.PathFinder.find_spec(name, path, target)

    def invalidate_caches(self):
        """Nothing is remembered here."""
