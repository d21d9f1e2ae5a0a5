"""Readers for the cases of the push, and the page cache's part of a file."""

import ctypes
import mmap
import os
import select

from lib import equal

PAGE = 4096
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                      ctypes.c_long]
LIBC.mincore.argtypes = LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]


def compute(seconds=0.005):
    """The computation of a job between two reads."""
    select.select([], [], [], seconds)


def whole(file):
    """Read a whole file, without Python's open(), which makes an ioctl each time."""
    fd = os.open(file, os.O_RDONLY)
    try:
        pieces = []
        while piece := os.read(fd, 1 << 20):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(fd)


def by_pages(file, rng):
    """The same by a mapping, whose pages are touched in random order."""
    fd = os.open(file, os.O_RDONLY)
    with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as m:
        os.close(fd)
        pages = list(range(0, len(m), PAGE))
        rng.shuffle(pages)
        for page in pages:
            _ = m[page]
        return m[:]


def resident(file):
    """The bytes of a file that are in the page cache; the call causes at most a lookup."""
    size = os.stat(file).st_size
    if not size:
        return 0
    fd = os.open(file, os.O_RDONLY)
    at = LIBC.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
    os.close(fd)
    pages = (size + PAGE - 1) // PAGE
    found = ctypes.create_string_buffer(pages)
    equal(LIBC.mincore(at, size, found), 0, "mincore")
    LIBC.munmap(at, size, None)
    return sum(b & 1 for b in found.raw) * PAGE
