"""Files that a cell shows: display(path), display_file(path)."""

import base64
import json
import os
import pathlib
import stat

from IPython.display import display

from cellard_types import BINARY, TYPES

LIMIT = int(os.environ.get("CELLARD_FILE_BYTES") or 64 << 20)
OCTETS = "application/octet-stream"


def bundle(path):
    """The content of a file by its MIME type, and its path as text/plain.

    Raises OSError, or ValueError if it isn't a regular file or is too large.
    """
    path = os.fspath(path)
    data = _read(path)
    name = path if isinstance(path, str) else os.fsdecode(path)
    kind = TYPES.get(os.path.splitext(name)[1][1:].lower(), OCTETS)
    value = _value(kind, data)
    if value is None:  # not what its name says
        kind, value = ("text/plain", data.decode("utf-8", "replace")) if kind not in BINARY else (OCTETS, _encode(data))
    return {"text/plain": name, kind: value}


def display_file(path):
    """Show a file: an image as an image, a table as a table, by its name."""
    display(bundle(path), raw=True)


def showable(value):
    """Whether display() shows the file behind a value rather than the value."""
    if not isinstance(value, pathlib.Path):
        return False
    try:
        return stat.S_ISREG(os.stat(value).st_mode)
    except (OSError, ValueError):
        return False


def _read(path):
    # Never waits: what is there now may be a pipe, whatever it was a moment ago.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        os.close(fd)
        raise ValueError(f"not a regular file: {os.fsdecode(path)!r}")
    with open(fd, "rb") as file:
        if found.st_size <= LIMIT:
            data = file.read(LIMIT + 1)
            if len(data) <= LIMIT:
                return data
    raise ValueError(f"{os.fsdecode(path)!r} is larger than {LIMIT} bytes, which is the limit for showing a file")


def _value(kind, data):
    """The value as it goes into a message, or None if it isn't of that kind."""
    if kind in BINARY:
        return _encode(data)
    if kind == "application/json" or kind.endswith("+json"):
        try:
            return json.loads(data.decode("utf-8-sig"), parse_constant=_refuse)
        except (ValueError, RecursionError):
            return None
    return data.decode("utf-8", "replace")


def _encode(data):
    return base64.b64encode(data).decode("ascii")


def _refuse(name):
    raise ValueError(f"{name} is not JSON")
