"""The tools of `epochfs` that are written in Python:  python3 -I FOLDER TOOL [WORD]...     fs/cli/python.c runs them.

FOLDER has this file, and the files of the module that a tool needs. All of the module may be elsewhere, or nowhere: so the
package is made here, without its __init__.py.
"""

import errno
import importlib
import os
import signal
import sys
import types

TOOLS = {"audit": "_audit", "drawing": "_drawing", "status": "_status_page"}
SYSTEM = 6  # exit code of epochfs


def main():
    for number in (signal.SIGINT, signal.SIGPIPE):  # end as a program in C does
        signal.signal(number, signal.SIG_DFL)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")
    if sys.stdout is None:
        print(f"epochfs: standard output: {os.strerror(errno.EBADF)}", file=sys.stderr)
        return SYSTEM
    package = types.ModuleType("epochfs")
    package.__path__ = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "epochfs")]
    sys.modules["epochfs"] = package
    try:
        tool = importlib.import_module(f"epochfs.{TOOLS[sys.argv[1]]}")
    except ImportError as e:
        print(f"epochfs: {sys.argv[1]}: {sys.executable} lacks the module {e.name}: install NumPy (the Debian package "
              "python3-numpy), or set EPOCHFS_PYTHON to a Python that has it", file=sys.stderr)
        return SYSTEM
    code = tool.main(*sys.argv[2:])
    try:
        sys.stdout.flush()
    except OSError as e:
        print(f"epochfs: standard output: {e.strerror}", file=sys.stderr)
        os._exit(SYSTEM)
    return code


if __name__ == "__main__":
    sys.exit(main())
