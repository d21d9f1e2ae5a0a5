#!/usr/bin/python3
# needs: python3-pil dataset-fashion-mnist
"""The quick start of README.md with a directory of JPEGs: what its commands print, to the letter. `epochfs info` draws on a
terminal of 80 columns without colors. The training that follows: tests/mount/python/case-readme.py."""

import os
import subprocess

import clothes
import tutorials
from lib import DEADLINE, equal, run
from page_blocks import take
from terminal import on_terminal

INFO = take("README.md", "epochfs info -o")
MOUNT = take("README.md", "ls ~/mnt/train")


def info():
    command, printed = tutorials.commands_of(INFO)
    program, subcommand, *arguments = command.split()
    equal((program, subcommand, command.count("\n")), ("epochfs", "info", 1), "the command")
    drawn = on_terminal(*arguments, TERM="xterm", LC_ALL="C.UTF-8", NO_COLOR="1")
    equal([line.rstrip() for line in drawn], printed.splitlines(), "what info draws")


def mount():
    commands, printed = tutorials.commands_of(MOUNT)
    done = subprocess.run(["bash", "-euc", commands], env=tutorials.environment(), stdin=subprocess.DEVNULL, timeout=DEADLINE,
                          stdout=subprocess.PIPE, check=True, text=True)
    equal(done.stdout, printed, "what ls prints")
    run("umount", f"{tutorials.HOME}/mnt")


os.makedirs(tutorials.HOME)
os.chdir(tutorials.HOME)
clothes.make("clothes")
info()
mount()
