"""A terminal for `epochfs info`."""

import fcntl
import os
import pty
import struct
import subprocess
import termios

from lib import DEADLINE, EPOCHFS, equal


def on_terminal(*arguments, columns=80, **environment):
    """The lines that epochfs writes to a terminal of that width."""
    kept = {name: value for name, value in os.environ.items()
            if name not in ("TERM", "COLORTERM", "NO_COLOR", "LANG", "LC_ALL", "LC_CTYPE")}
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen([EPOCHFS, "info", *arguments], stdin=subprocess.DEVNULL, stdout=its,
                               env={**kept, **environment})
    os.close(its)
    out = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # EIO: no process has the terminal open any more
            break
        if not piece:
            break
        out += piece
    os.close(ours)
    equal(process.wait(DEADLINE), 0, f"exit code of info {arguments}")
    return out.decode().replace("\r\n", "\n").splitlines()
