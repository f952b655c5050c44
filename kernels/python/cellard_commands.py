"""Commands of a cell: `!command`, `x = !command`, `%%bash`, `%%script`.

IPython runs `!command` on a pseudo-terminal and copies what it reads, which
breaks characters, mixes stdout and stderr, waits for ever where a program asks
for input, and goes on with the next line after an interrupt. Here a command
inherits the kernel's own descriptors, and an interrupt ends the command and
then the cell.
"""

import os
import shutil
import signal
import subprocess

from IPython.core import magic_arguments
from IPython.core.magic import cell_magic, magics_class
from IPython.core.magics.script import ScriptMagics, script_args
from IPython.utils.process import arg_split

# How long a command has to end after each signal, in seconds.
PATIENCE = 0.5


def run(command, *, shell, stdin=None, capture=False):
    """Run a command to its end; return its status and, if captured, its output."""
    process = subprocess.Popen(
        command,
        shell=shell,
        executable=_shell() if shell else None,
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE if capture else None,
        stderr=subprocess.STDOUT if capture else None,
        start_new_session=True,  # so that all of it can be stopped
    )
    try:
        output, _ = process.communicate(stdin)
    except KeyboardInterrupt:
        # The agent signals what the cell has started while all of it stands still. A signal
        # from here could end what a shell waits for, and not the shell.
        stop(process, 0, 0, signal.SIGKILL)
        raise
    except BaseException:
        stop(process, signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
        raise
    return process.returncode, output


def stop(process, *signals):
    """End a command by these signals, each of which is given time; 0 is none."""
    for signum in signals:
        try:
            os.killpg(process.pid, signum)
            process.wait(PATIENCE)
            return
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
        finally:
            if process.poll() is not None:
                for pipe in (process.stdin, process.stdout):
                    if pipe is not None:
                        pipe.close()


def _shell():
    """The user's shell, or what there is. A minimal image may have no bash."""
    shell = os.environ.get("SHELL")
    if shell and os.access(shell, os.X_OK):
        return shell
    return shutil.which("bash") or "/bin/sh"


@magics_class
class Scripts(ScriptMagics):
    """%%script and the magics made of it, with the output left to the child."""

    @magic_arguments.magic_arguments()
    @script_args
    @cell_magic("script")
    def shebang(self, line, cell):
        """Run a cell by a program: its text is the program's standard input."""
        args, command = self.shebang.parser.parse_known_args(arg_split(line, posix=True))
        if args.bg or args.out or args.err or args.proc:
            return self._to_variables(line, cell)
        text = cell if cell.endswith("\n") else cell + "\n"
        status, _ = run(command, shell=False, stdin=text.encode("utf-8", "replace"))
        if args.raise_error and status != 0:
            raise subprocess.CalledProcessError(status, cell)
        return None

    def _to_variables(self, line, cell):
        """IPython's own, which ends a command at an interrupt, and then goes on."""
        interrupts = self.shell.app.interrupts
        before = interrupts.count()
        try:
            result = super().shebang(line, cell)
        except Exception:
            if interrupts.count() == before:
                raise
        else:
            if interrupts.count() == before:
                return result
        raise KeyboardInterrupt
