#!/usr/bin/python3
"""The programs of docs/library.md: compiled, linked and run."""

import os
import subprocess

import numpy as np

from lib import EPOCHFS, SLOW, SOURCE, contains, equal, idx_bytes, skip, write
from page_blocks import ROOT, take

BUILD = os.path.dirname(EPOCHFS)
if SLOW or not os.path.exists(f"{BUILD}/libepochfs.so.0"):
    skip("the library is not built, or with a sanitizer, which a program would have to bring")

rng = np.random.default_rng(3)
write("train-images-idx3-ubyte", idx_bytes(rng.integers(0, 256, (300, 8, 8), np.uint8)))
write("train-labels-idx1-ubyte", idx_bytes(rng.integers(0, 10, 300, np.uint8)))

# As installed, without root: what pkg-config says is of that place.
os.makedirs("root/lib/pkgconfig")
os.makedirs("root/include")
for name, place in ((f"{BUILD}/libepochfs.so.0", "lib/libepochfs.so.0"), (f"{BUILD}/libepochfs.so.0", "lib/libepochfs.so"),
                    (f"{ROOT}/fs/library/epochfs.h", "include/epochfs.h")):
    os.symlink(name, f"root/{place}")
with open(f"{BUILD}/libepochfs.pc", encoding="utf-8") as f:
    lines = f.read().splitlines()
here = os.path.abspath("root")
places = {"prefix": here, "libdir": f"{here}/lib", "includedir": f"{here}/include"}
with open("root/lib/pkgconfig/libepochfs.pc", "w", encoding="utf-8") as f:
    for line in lines:
        name = line.partition("=")[0]
        f.write((f"{name}={places[name]}" if name in places else line) + "\n")

program = take("docs/library.md", "epochfs_batches_take")
equal(len([line for line in program.split("int main")[1].splitlines() if line.strip()]) < 40, True, "a short program")
with open("train.c", "w", encoding="utf-8") as f:
    f.write(program)
environment = {**os.environ, "PKG_CONFIG_PATH": f"{here}/lib/pkgconfig", "LD_LIBRARY_PATH": f"{here}/lib"}
subprocess.run(["bash", "-ec", take("docs/library.md", "pkg-config")], check=True, env=environment)
said = subprocess.run(["./a.out", SOURCE], check=True, env=environment, stdout=subprocess.PIPE, text=True).stdout
contains(said, "  image: |u1, 128 samples, 8192 bytes\n", "  label: |u1, 128 samples, 128 bytes\n",
         "epoch 0: 3 batches, ", "epoch 1: 3 batches, ")
wrong = subprocess.run(["./a.out", "missing"], env=environment, stderr=subprocess.PIPE, text=True)
equal(wrong.returncode, 1, "exit code")
contains(wrong.stderr, "missing: ")

# The same file by the programs in other languages, where these are installed.
size = len(subprocess.run([EPOCHFS, "cat", SOURCE, "README.txt"], check=True, stdout=subprocess.PIPE).stdout)
for language, program, *commands in (
        ("rustc", take("docs/library.md", "#[link"), ["rustc", "--edition", "2021", "-L", f"{here}/lib", "-o", "size", "size.rustc"], ["./size"]),
        ("julia", take("docs/library.md", "@ccall"), ["julia", "size.julia"])):
    with open(f"size.{language}", "w", encoding="utf-8") as f:
        f.write(program)
    try:
        subprocess.run([language, "--version"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        print(f"{language} is not installed")
        continue
    *builds, command = commands
    for build in builds:
        subprocess.run(build, check=True, env=environment)
    said = subprocess.run([*command, SOURCE, "README.txt"], check=True, env=environment, stdout=subprocess.PIPE, text=True).stdout
    equal(said, f"{size} bytes\n", language)
