#!/usr/bin/python3
# needs: g++ libeigen3-dev
"""docs/library.md, Eigen matrices, done as a reader would; then the header against files that are wrong."""

import subprocess

import tutorials
from lib import content, contains, equal, need_fashion

need_fashion()
tutorials.run_page("docs/library.md", "Eigen matrices in C++")

# What a loader must never take for a matrix.
lines = content(tutorials.HOME, "epochfs_eigen.h").count(b"\n")
equal(lines <= 60, True, f"lines of the header: {lines}")
with open(f"{tutorials.HOME}/try.cpp", "w", encoding="ascii") as f:
    f.write('#include "epochfs_eigen.h"\n#include <iostream>\nint main(int, char **argv) {\n'
            'try { const auto m = epochfs::read_npy(argv[1]); std::cout << m.rows() << " x " << m.cols() << ": " << m.sum(); }\n'
            'catch (const std::exception &e) { std::cout << e.what(); } }\n')
subprocess.run(["g++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror",
                "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-isystem", "/usr/include/eigen3",
                "-o", "try", "try.cpp"], cwd=tutorials.HOME, check=True)


def says(data):
    with open(f"{tutorials.HOME}/x.npy", "wb") as f:
        f.write(data)
    return subprocess.run(["./try", "x.npy"], cwd=tutorials.HOME, stdout=subprocess.PIPE, check=True).stdout.decode()


def npy(descr, shape, data, fortran=b"False"):
    header = b"{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }" % (descr, fortran, shape)
    return b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + data


equal(says(npy(b"|u1", b"2, 3", bytes(range(6)))), "2 x 3: 15", "a matrix")
equal(says(npy(b"<i8", b"2,", (5).to_bytes(8, "little") * 2)), "2 x 1: 10", "labels")
equal(says(npy(b"<f4", b"", b"\0\0\x80\x3f")), "1 x 1: 1", "a scalar")
equal(says(npy(b"<f4", b"0, 3", b"")), "0 x 3: 0", "no rows")
for name, data in [("nothing", b""), ("text", b"x" * 200), ("cut", npy(b"|u1", b"2, 3", bytes(5))),
                   ("longer", npy(b"|u1", b"2, 3", bytes(7))), ("type", npy(b"<c8", b"2,", bytes(16))),
                   ("no-type", npy(b"", b"2,", bytes(16))), ("no-shape", b"\x93NUMPY\1\0\2\0{}"),
                   ("header", b"\x93NUMPY\1\0\xff\xff{}"),
                   ("columns-first", npy(b"|u1", b"2, 3", bytes(6), b"True")),
                   ("negative", npy(b"|u1", b"-2, -3", bytes(6)))]:
    contains(says(data), "x.npy: ")
