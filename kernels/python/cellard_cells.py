"""What a cell was given besides its code: environment variables, a directory.

They come in the metadata of the execute_request, under "cellard", and so never
touch the cell's text. After the cell the old ones are back, unless the cell has
changed them itself.
"""

import os


class InvalidDirectory(OSError):
    """The name that it has in every language."""


class Surroundings:
    """The environment and directory of one cell: enter, run, leave."""

    def __init__(self, metadata):
        given = (metadata or {}).get("cellard") or {}
        self._env = given.get("env") or {}
        self._cwd = given.get("cwd") or None
        self._before = {}  # by name: the value that was there, or None
        self._home = None  # the old directory, as a descriptor
        self._went = None  # the new one, as os.stat tells it

    def enter(self):
        """Set them. Raises OSError or ValueError, and then nothing is changed."""
        for name, value in self._env.items():
            if not name or "=" in name or "\0" in name or "\0" in str(value):
                raise ValueError(f"not an environment variable: {name!r}")
        if self._cwd is not None:
            self._enter_directory(self._cwd)
        for name, value in self._env.items():
            self._before[name] = os.environ.get(name)
            os.environ[name] = str(value)

    def leave(self):
        for name, before in self._before.items():
            if os.environ.get(name) != str(self._env[name]):
                continue  # the cell's own change
            if before is None:
                del os.environ[name]
            else:
                os.environ[name] = before
        if self._home is not None:
            self._leave_directory()

    def _enter_directory(self, cwd):
        # As a descriptor, the old directory can be gone back to even if it was
        # renamed or can't be read.
        self._home = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.chdir(cwd)
            self._went = os.stat(".")
        except BaseException as error:
            os.close(self._home)
            self._home = None
            if not isinstance(error, OSError):
                raise
            text = f"the directory of the cell can't be entered: {cwd}: {error.strerror}"
            raise InvalidDirectory(text) from None

    def _leave_directory(self):
        try:
            if os.path.samestat(os.stat("."), self._went):
                os.fchdir(self._home)
        except OSError:
            pass  # the old directory can no longer be entered: stay
        finally:
            os.close(self._home)
            self._home = None
