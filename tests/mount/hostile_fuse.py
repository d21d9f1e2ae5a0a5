#!/usr/bin/python3
"""A file system that its user wrote, under the name of epochfs: .epochfs/metrics has any text, is a link, or is never
answered.

    hostile_fuse.py MOUNTPOINT OPTIONS TEXT | link:TARGET | big | zeros | hang
"""

import array
import errno
import os
import socket
import stat
import struct
import subprocess
import sys

ROOT, FOLDER, FILE = 1, 2, 3
LOOKUP, FORGET, GETATTR, READLINK, OPEN, READ, RELEASE, FLUSH, INIT, OPENDIR = 1, 2, 3, 5, 14, 15, 18, 25, 26, 27
STATFS, RELEASEDIR, ACCESS, INTERRUPT, BATCH_FORGET = 17, 29, 34, 36, 42


def mount(mountpoint, options):
    ours, theirs = socket.socketpair()
    subprocess.run(["fusermount3", "-o", f"subtype=epochfs,{options}", "--", mountpoint], check=True,
                   pass_fds=[theirs.fileno()], env=dict(os.environ, _FUSE_COMMFD=str(theirs.fileno())))
    _, ancillary, _, _ = ours.recvmsg(1, socket.CMSG_SPACE(4))
    return array.array("i", ancillary[0][2])[0]


def attributes(node, text):
    is_link = text.startswith("link:")
    mode = 0o755 | stat.S_IFDIR if node != FILE else 0o777 | stat.S_IFLNK if is_link else 0o644 | stat.S_IFREG
    return struct.pack("=6Q3I6II", node, len(text) if node == FILE else 0, 0, 0, 0, 0, 0, 0, 0, mode, 1,
                       os.getuid(), os.getgid(), 0, 4096, 0)


def answer(opcode, node, body, text):
    """The bytes of a reply; a number: an error; None: no reply."""
    if opcode == INIT:
        return struct.pack("=IIIIHHIIHH8I", 7, 31, 65536, 0, 12, 9, 65536, 1, 16, 0, *[0] * 8)
    if opcode in (FORGET, BATCH_FORGET, INTERRUPT):
        return None
    if text == "hang":
        return None
    if opcode == LOOKUP:
        found = {(ROOT, b".epochfs"): FOLDER, (FOLDER, b"metrics"): FILE}.get((node, body.rstrip(b"\0")))
        return struct.pack("=QQQQII", found, 0, 0, 0, 0, 0) + attributes(found, text) if found else errno.ENOENT
    if opcode == GETATTR:
        return struct.pack("=QII", 0, 0, 0) + attributes(node, text)
    if opcode == READLINK:
        return text[len("link:"):].encode()
    if opcode in (OPEN, OPENDIR):
        return struct.pack("=QII", 0, 1, 0)
    if opcode == READ:
        offset, size = struct.unpack_from("=QI", body, 8)
        return text.encode()[offset:offset + size]
    if opcode == STATFS:
        return bytes(80)
    return b"" if opcode in (ACCESS, RELEASE, RELEASEDIR, FLUSH) else errno.ENOSYS


def main():
    device = mount(*sys.argv[1:3])
    text = {"big": "x" * (1 << 19), "zeros": "\0" * 9 + "\n"}.get(sys.argv[3], sys.argv[3])
    print("mounted", flush=True)
    while True:
        try:
            request = os.read(device, 1 << 20)
        except OSError:  # unmounted
            return
        _, opcode, unique, node = struct.unpack_from("=IIQQ", request)
        reply = answer(opcode, node, request[40:], text)
        if reply is None:
            continue
        error, payload = (0, reply) if isinstance(reply, bytes) else (-reply, b"")
        try:
            os.write(device, struct.pack("=IiQ", 16 + len(payload), error, unique) + payload)
        except OSError:  # interrupted
            pass


main()
