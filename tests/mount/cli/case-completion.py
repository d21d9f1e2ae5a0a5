#!/usr/bin/python3
# slow: types into two shells
"""Completion in bash and zsh, each in a terminal of its own, offers what --help says."""

import os
import pty
import re
import select
import shlex
import shutil
import struct
import termios
import time
from fcntl import ioctl

import help_text
from lib import DEADLINE, EPOCHFS, PRIVATE, SOURCE, contains, equal, mounted, skip, small

COMPLETIONS = os.path.join(os.environ["CASES"], "../../completions")
INSERT_ALL, COMPLETE, REPORT = b"\x14", b"\t", b"\x0f"  # keys: Ctrl-T, Tab, Ctrl-O

BASH = r"""
PS1= PROMPT_COMMAND=ready
ready() { PROMPT_COMMAND=; printf 'ready\0' >"$REPLIES"; }
report() { printf '%s\0' "$READLINE_LINE" >"$REPLIES"; READLINE_LINE= READLINE_POINT=0; }
bind 'set bell-style none'
bind 'set enable-bracketed-paste off'
bind '"\C-t": insert-completions'
bind -x '"\C-o": report'
source "$COMPLETIONS/epochfs.bash"
"""

ZSH = r"""
PS1= RPS1=
unset zle_bracketed_paste
fpath=($COMPLETIONS $fpath)
autoload -Uz compinit
compinit -D -u
all_matches() { _main_complete; compstate[insert]=all; compstate[list]=; }
zle -C all_matches complete-word all_matches
bindkey '^T' all_matches
report() { print -rn -- "$BUFFER"$'\0' >$REPLIES; BUFFER=; }
zle -N report
bindkey '^O' report
zle-line-init() { zle -D zle-line-init; print -rn -- $'ready\0' >$REPLIES; }
zle -N zle-line-init
"""


class Shell:
    """An interactive shell; replies come through a pipe, and what the terminal shows is dropped."""

    def __init__(self, words, **environment):
        path = os.path.join(PRIVATE, "replies-" + words[0])
        os.mkfifo(path)
        self.replies = os.open(path, os.O_RDWR)
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(PRIVATE)
            env = {"PATH": os.environ["PATH"], "HOME": PRIVATE, "TERM": "dumb", "REPLIES": path,
                   "COMPLETIONS": COMPLETIONS, "INPUTRC": "/dev/null", "LC_ALL": "C.UTF-8", **environment}
            os.execvpe(words[0], words, env)
        ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 1000, 4000, 0, 0))
        equal(self.reply(), "ready", words[0])

    def reply(self):
        found, until, shown = b"", time.monotonic() + DEADLINE, b""
        while not found.endswith(b"\0"):
            ready, _, _ = select.select([self.replies, self.terminal], [], [], until - time.monotonic())
            if not ready:
                raise AssertionError(f"no answer; the terminal shows {shown!r}")
            if self.terminal in ready:
                shown += os.read(self.terminal, 65536)
            if self.replies in ready:
                found += os.read(self.replies, 65536)
        return found[:-1].decode()

    def line(self, typed, key):
        """The line after pressing that key."""
        os.write(self.terminal, typed.encode() + key + REPORT)
        return self.reply()

    def offered(self, typed):
        """The completions there, without the text before them in the same word; set(): none."""
        line = self.line(typed, INSERT_ALL)
        if line == typed:
            return set()
        words = shlex.split(line[typed.rindex(" "):])
        return {re.split("[=,]", word.rstrip("=,"))[-1] for word in words}

    def end(self):
        os.close(self.terminal)
        os.waitpid(self.pid, 0)
        os.close(self.replies)


def bash():
    setup = os.path.join(PRIVATE, "bashrc")
    with open(setup, "w") as f:
        f.write(BASH)
    return Shell(["bash", "--noprofile", "--rcfile", setup, "-i"])


def zsh():
    folder = os.path.join(PRIVATE, "zsh")
    os.mkdir(folder)
    with open(os.path.join(folder, ".zshrc"), "w") as f:
        f.write(ZSH)
    return Shell(["zsh", "-d", "-i"], ZDOTDIR=folder)


def check_commands(shell):
    commands = set(help_text.commands(EPOCHFS))
    equal(shell.offered("epochfs ") - {"--help", "--version"}, commands, "commands")
    equal(shell.offered("epochfs cache "), {"list", "verify", "prune"}, "what to do with a cache")
    for command in commands:
        lines = help_text.usage(help_text.said(EPOCHFS, command, "--help"))
        for line in lines:
            words = " ".join(line.split()[:len(lines) > 1 and 2 or 1])
            want = {re.match("[a-z-]+", flag)[0] for flag in help_text.flags(line)}
            equal(shell.offered(f"epochfs {words} -") - {"-h", "--help"}, want, words)


NEEDS = {"pack": "seq_len=2048,"}  # options that make no sense alone, and what they need


def check_options(shell):
    options = {option.split("=")[0] for option in help_text.options(EPOCHFS)}
    with_value = {option.split("=")[0] for option in help_text.options(EPOCHFS) if "=" in option}
    equal(shell.offered("epochfs mount -o "), options, "behind -o")
    equal(shell.offered("epochfs stage -o transpose,evict=never,cache"), {"cache_dir", "cache_size"}, "behind a comma")
    equal(shell.line("epochfs mount -o bloc", COMPLETE).rstrip(), "epochfs mount -o block_size=", "one option")
    for option in with_value - {"cache_dir", "ca_cert", "plan", "peers", "peers_secret"}:  # files, and beginnings
        found = shell.offered(f"epochfs info -o transpose,{option}=")
        equal(found, set(help_text.words(EPOCHFS, option)) or found, f"values of {option}")
        for value in found:
            text = help_text.said(EPOCHFS, "mount", "-o", f"{NEEDS.get(option, '')}{option}={value}", SOURCE, "/nowhere/mountpoint")
            contains(text, "mountpoint /nowhere/mountpoint")


def check_files(shell):
    for name in "one folder", "other":
        os.makedirs(os.path.join(PRIVATE, "files", name), exist_ok=True)
    with open(os.path.join(PRIVATE, "files", "one file"), "w"):
        pass
    front = f"epochfs mount {PRIVATE}/files/o"
    equal({os.path.basename(w.rstrip("/")) for w in shell.offered(front)}, {"one folder", "one file", "other"}, "SOURCE")
    front = f"epochfs mount x {PRIVATE}/files/o"
    equal({os.path.basename(w.rstrip("/")) for w in shell.offered(front)}, {"one folder", "other"}, "MOUNTPOINT")
    line = shell.line(f"epochfs mount -o evict=never,cache_dir={PRIVATE}/files/ot", COMPLETE)
    equal(line.rstrip(), f"epochfs mount -o evict=never,cache_dir={PRIVATE}/files/other/", "cache_dir=")


def check_mountpoints(shell, at):
    for command in "umount", "status":
        line = shell.line(f"epochfs {command} {os.path.dirname(at)}/moun", COMPLETE)
        equal(shlex.split(line), ["epochfs", command, at], f"{command}: one that is mounted")
        equal(shell.offered(f"epochfs {command} {PRIVATE}/files/"), set(), f"{command}: none is mounted there")


def main():
    small()
    at = os.path.join(PRIVATE, "mounts", "mounted 100%s")
    os.makedirs(at)
    tried = [s for s in (bash, zsh) if shutil.which(s.__name__)]
    if not tried:
        skip("neither bash nor zsh is here")
    for start in tried:
        shell = start()
        check_commands(shell)
        check_options(shell)
        check_files(shell)
        with mounted(at=at):
            check_mountpoints(shell, at)
        shell.end()


main()
