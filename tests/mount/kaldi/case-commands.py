#!/usr/bin/python3
# slow: waits for commands that take long
"""Lines of scp files that are shell commands: refused unless allowed, run once, kept, ended after a
time, and never in the way of other reads."""

import errno
import os
import shutil
import signal
import subprocess
import time

import numpy as np

import kaldi_dirs as kd
from kaldi_dirs import BAD, Dataset, Item
from lib import (CACHE, MOUNTPOINT, PRIVATE, SLOW, SOURCE, contains, content, equal,
                 log_text, mount_type, mounted, path, run, start, status, stop, text, write)
from servers import wait_until

AT_ONCE = 30  # seconds, generously: a command may take 60
GOOD_IN_TIME = 45  # seconds: below the default limit of 60 for a command
rng = np.random.default_rng(86)
COUNT = f"{PRIVATE}/count"  # commands that run add a line


def fresh():
    for folder in (SOURCE, CACHE):
        shutil.rmtree(folder)
        os.mkdir(folder, 0o700)
    if os.path.exists(COUNT):
        os.unlink(COUNT)


def counted(word=b"x"):
    return content(COUNT).split().count(word) if os.path.exists(COUNT) else 0


def matrix(*shape):
    a = rng.normal(size=shape).astype(np.float32)
    return Item("matrix", a, kd.fm(a))


def part(item, first, last, *columns):
    a = item.value[first:last + 1]
    a = np.ascontiguousarray(a[:, columns[0]:columns[1] + 1] if columns else a)
    return Item("matrix", a, kd.fm(a))


def fifo(name):
    file = f"{PRIVATE}/{name}"
    os.mkfifo(file)
    return file


def feed(file, data):
    """Write to a fifo, once a command reads it."""
    fds = []

    def opened():
        try:
            fds.append(os.open(file, os.O_WRONLY | os.O_NONBLOCK))
        except OSError as e:
            equal(e.errno, errno.ENXIO, f"opening {file}")
        return fds

    wait_until(opened, f"a command that reads {file}")
    os.set_blocking(fds[0], True)
    with open(fds[0], "wb") as f:
        f.write(data)


def command_lines():
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as f:
                    found.append(f.read())
            except OSError:
                pass  # it has just ended
    return found


def processes(word):
    """Those that have the word in their command line."""
    return [line for line in command_lines() if word.encode() in line]


# ---- allowed or not ----

def check_refused():
    """No command runs unless allowed; the message says how to allow it."""
    fresh()
    m = matrix(3, 2)
    file = write("m.mat", m.raw)
    run_it = f"echo x >> {COUNT}; cat {file} |"
    kd.script("some.scp", ["a m.mat", f"b {run_it}", "c m.mat", f"d {run_it}[0:1]"])
    kd.script("only.scp", [f"a {run_it}", f"b {run_it}"])
    for options in ([], ["allow_outside"], ["command_timeout=5"]):
        with mounted(SOURCE, *options):
            ds = Dataset(path("some.scp"), "abcd", {"data": [m, BAD, m, BAD]})
            kd.check(ds)
            contains(text(ds.folder, "dataset.json"), "allow_commands")
            kd.check_error(path("only.scp"), "only.scp", "allow_commands")
            contains(log_text(), "allow_commands")
        contains(run("info", SOURCE), "allow_commands")
        equal(counted(), 0, "commands that ran though they were not allowed")
    with mounted(SOURCE, "kaldi=p"):
        kd.check(Dataset(path("some.scp"), "ac", {"data": [m, m]}))
        kd.check_error(path("only.scp"), "allow_commands")
    equal(counted(), 0, "commands that ran though they were not allowed")
    message = run("mount", f"{SOURCE}/only.scp", MOUNTPOINT, code=2)
    contains(message, "only.scp", "allow_commands")
    for option in ("allow_commands=1", "allow_command", "command_timeout", "command_timeout=",
                   "command_timeout=0", "command_timeout=-1", "command_timeout=x",
                   "command_timeout=1s"):
        message = run("mount", "-o", option, SOURCE, MOUNTPOINT, code=1)
        contains(message, "command")
        equal(message.count("\n"), 1, f"one message: {message!r}")
    contains(run("mount", "--help", "all"), "allow_commands", "command_timeout=", "allow_outside", "60")


def check_allowed():
    """The output of a command is an object, or a part of one."""
    fresh()
    m, big = matrix(6, 4), matrix(40000, 30)
    wave = kd.tone(rng, 3000, 2)
    file = write("it's m.mat", m.raw)
    link = f"{PRIVATE}/m"
    os.symlink(file, link)
    write("m.ark", b"key " + m.raw)
    write("big.mat", big.raw)
    write("w.wav", kd.wave_bytes(wave))
    write("t.mat", kd.text_matrix(np.ones((2, 3), np.float32)))
    os.environ["EPOCHFS_TEST_FILE"] = file
    lines = [("cat", f"cat {link} |", m), ("blanks", f"  cat   {link}   |  ", m),
             ("tight", f"cat {link}|", m), ("quotes", f"cat \"{file}\" |", m),
             ("variable", "cat \"$EPOCHFS_TEST_FILE\" |", m),
             ("pipes", f"cat {link} | cat | cat |", m), ("two", f"true; false; cat {link} |", m),
             ("or", f"false || cat {link} |", m), ("stderr", f"echo oops >&2; cat {link} |", m),
             ("more", f"cat {link}; echo and more |", m),
             ("pieces", f"head -c 40 {link}; tail -c +41 {link} |", m),
             ("loop", f"for f in {link}; do cat $f; done |", m), ("here",
                                                                  "cd " + SOURCE + "; cat t.mat |",
              Item("matrix", np.ones((2, 3), np.float32))),
             ("ark", f"tail -c +5 {SOURCE}/m.ark |", m),
             ("range", f"cat {link} |[1:3]", part(m, 1, 3)),
             ("columns", f"cat {link} |[0:7,2:3]", part(m, 0, 5, 2, 3)),
             ("range-bad", f"cat {link} |[0:9]", BAD), ("range-odd", f"cat {link} |[0]", BAD),
             ("big", f"cat {SOURCE}/big.mat |", big), ("big-part",
                                                       f"cat {SOURCE}/big.mat |[39998:40000]",
              part(big, 39998, 39999)),
             ("sigpipe", f"yes | head -n 3 >/dev/null; cat {link} |", m)]
    kd.script("t.scp", [f"{key} {line}" for key, line, _ in lines])
    waves = [("w", f"cat {SOURCE}/w.wav |"), ("stream", f"head -c 40 {SOURCE}/w.wav; "
             f"printf '\\377\\377\\377\\377'; tail -c +45 {SOURCE}/w.wav |"), ("file", "w.wav")]
    kd.script("w.scp", [f"{key} {line}" for key, line in waves])
    with mounted(SOURCE, "allow_commands"):
        ds = Dataset(path("t.scp"), [key for key, _, _ in lines],
                     {"data": [i for _, _, i in lines]})
        kd.check(ds)
        item = Item("wave", wave)
        kd.check(Dataset(path("w.scp"), ["w", "stream", "file"], {"data": [item] * 3}))


def check_surroundings():
    """The environment of a command: the mount's cwd, no input, default signals, none of our
    descriptors."""
    fresh()
    m = matrix(2, 2)
    file = write("m.mat", m.raw)
    os.makedirs(f"{PRIVATE}/here", exist_ok=True)
    shutil.copy(file, f"{PRIVATE}/here/local.mat")
    out = f"{PRIVATE}/here/found"
    kd.script("t.scp", [
        "cwd cat local.mat |", "input cat |", f"pwd pwd > {out}.pwd; cat {file} |",
        f"signals grep ^Sig /proc/self/status > {out}.signals; cat {file} |",
        f"open ls -l /proc/self/fd > {out}.open; cat {file} |"])
    os.chdir(f"{PRIVATE}/here")
    for background in (False, True):
        shutil.rmtree(CACHE)
        if background:
            run("mount", "-o", "allow_commands", SOURCE, MOUNTPOINT)
        daemon = None if background else start(SOURCE, "allow_commands")
        ds = Dataset(path("t.scp"), ["cwd", "input", "pwd", "signals", "open"],
                     {"data": [m, BAD, m, m, m]})
        kd.check(ds)
        if background:
            run("umount", MOUNTPOINT)
        else:
            stop(daemon)
        equal(content(f"{out}.pwd").decode().strip(), f"{PRIVATE}/here", "cwd of commands")
        lines = content(f"{out}.signals").decode().splitlines()
        signals = dict(line.split(":\t") for line in lines)
        equal(int(signals["SigBlk"], 16), 0, "signals that a command has blocked")
        equal(int(signals["SigIgn"], 16) & 1 << (signal.SIGPIPE - 1), 0,
              "a command ignores SIGPIPE")
        equal("/dev/fuse" in content(f"{out}.open").decode(), False, "a command has our /dev/fuse")
    os.chdir(PRIVATE)


def check_failing():
    """Commands that fail: their samples only, and why."""
    fresh()
    m = matrix(3, 3)
    file = write("m.mat", m.raw)
    write("letters", b"letters\n")
    write("cut", m.raw[:-1])
    bad = {"exit": "exit 3 |", "false": "false |", "missing": f"cat {SOURCE}/none |",
           "unknown": "no-such-program-here |", "killed": "kill -9 $$ |", "syntax": "if |",
           "nothing": "true |", "letters": f"cat {SOURCE}/letters |", "cut": f"cat {SOURCE}/cut |",
           "late": f"cat {file}; exit 7 |", "empty": "|", "range": "false |[0:1]"}
    lines, items = ["good0 m.mat"], [m]
    for i, (key, line) in enumerate(bad.items()):
        lines += [f"{key} {line}", f"good{i + 1} cat {file}; true {i} |"]
        items += [BAD, m]
    kd.script("t.scp", lines)
    kd.script("none.scp", [f"{key} {line}" for key, line in bad.items()])
    with mounted(SOURCE, "allow_commands", "log=debug", log="log.failing"):
        ds = Dataset(path("t.scp"), [line.split()[0] for line in lines], {"data": items})
        kd.check(ds)
        for number in range(2, len(lines), 2):
            kd.expect_told(ds.folder, "t.scp", number, "log.failing")
        if "ERROR.txt" not in os.listdir(path("none.scp")):  # known only after they have run
            kd.check(Dataset(path("none.scp"), bad, {"data": [BAD] * len(bad)}))
        contains(log_text("log.failing"), "none.scp")
    with mounted(SOURCE, "allow_commands", "kaldi=p", log="log.p"):
        good = [i for i, item in enumerate(items) if item is not BAD]
        kd.check(Dataset(path("t.scp"), [ds.keys[i] for i in good], {"data": [m] * len(good)}))


def check_failing_often():
    """A failing command in many lines: it runs once, and no reader waits for another try."""
    fresh()
    m = matrix(3, 3)
    write("m.mat", m.raw)
    lines = ["good m.mat"] + [f"u{i} echo again >> {COUNT}; false |" for i in range(40)]
    kd.script("t.scp", lines)
    with mounted(SOURCE, "allow_commands", "command_timeout=60"):
        begin = time.monotonic()
        kd.check(Dataset(path("t.scp"), [line.split()[0] for line in lines],
                         {"data": [m] + [BAD] * 40}))
        equal(time.monotonic() - begin < 30, True, "no line waits for the time limit of another")
    equal(counted(b"again"), 1, "runs of a command that fails")


# ---- once, and kept ----

def check_once():
    """Each command runs once; the next mount has its output."""
    fresh()
    m = matrix(5, 2)
    file = write("m.mat", m.raw)
    lines = [f"u{i} echo c{i} >> {COUNT}; cat {file} |" for i in range(6)]
    same = f"echo same >> {COUNT}; cat {file} |"
    lines += [f"v{i} {same}[{i}:4]" for i in range(3)]
    kd.script("t.scp", lines)
    keys = [line.split()[0] for line in lines]
    items = [m] * 6 + [part(m, i, 4) for i in range(3)]
    for n in range(3):
        with mounted(SOURCE, "allow_commands"):
            ds = Dataset(path("t.scp"), keys, {"data": items})
            kd.check(ds)
            check_plans(ds)
        for i in range(6):
            equal(counted(b"c%d" % i), 1, f"mount {n + 1}: runs of command {i}")
        equal(counted(b"same"), 1, f"mount {n + 1}: runs of a command that stands in three lines")
    kd.script("t.scp", lines[1:] + [f"w echo new >> {COUNT}; cat {file} |"])
    with mounted(SOURCE, "allow_commands"):  # another scp, the same commands and a new one
        kd.check(Dataset(path("t.scp"), keys[1:] + ["w"], {"data": items[1:] + [m]}))
    equal((counted(b"new"), counted(b"c2"), counted(b"same")), (1, 1, 1),
          "runs after a line was added")
    kd.script("u.scp", ["a m.mat", lines[1]])
    with mounted(SOURCE, "allow_commands"):
        kd.check(Dataset(path("u.scp"), ["a", "u1"], {"data": [m, m]}))
    with mounted():  # what was kept needs no less permission
        kd.check_error(path("t.scp"), "allow_commands")
        kd.check(Dataset(path("u.scp"), ["a", "u1"], {"data": [m, BAD]}))


def check_plans(ds):
    for name in ("batch=4", "batch=9,seed=3"):
        folder = f"{ds.folder}/batches/{name}" + ("/epoch=0" if "seed" in name else "")
        index = np.load(f"{folder}/npy/000000.index.npy").tolist()
        kd.check_batch(ds, folder, 0, index)


def check_kept_damage():
    """A kept output is truncated or missing: the command runs again, or the sample reports what is
    wrong."""
    fresh()
    m = matrix(50, 8)
    file = write("m.mat", m.raw)
    kd.script("t.scp", [f"u cat {file}; echo x >> {COUNT} |"])
    with mounted(SOURCE, "allow_commands"):
        kd.check(Dataset(path("t.scp"), ["u"], {"data": [m]}))
    equal(counted(), 1, "runs")

    def kept():
        return [os.path.join(d, n) for d, _, names in os.walk(CACHE) for n in names
                if n != "EPOCHFS"]  # without the marker the folder is not ours

    equal(len(kept()) > 0, True, "something is kept in the cache folder")
    for damage in (lambda f: os.truncate(f, os.path.getsize(f) // 2), lambda f: os.truncate(f, 0),
                   os.unlink, lambda f: os.truncate(f, os.path.getsize(f) + 100)):
        for name in kept():
            os.chmod(name, 0o600)
            damage(name)
        with mounted(SOURCE, "allow_commands"):
            kd.check(Dataset(path("t.scp"), ["u"], {"data": [m]}))
    equal(counted() > 1, True, "it ran again")
    for where in (f"{SOURCE}/m.mat", "/dev/null/x"):  # no cache folder can exist
        os.environ["EPOCHFS_CACHE"] = where
        kd.script("u.scp", ["a m.mat", f"b cat {file} |"])
        with mounted(SOURCE, "allow_commands", log="log.nowhere"):
            names = os.listdir(path("u.scp/samples/npy"))
            equal("a.data.npy" in names, True, "samples beside a command without a cache folder")
            kd.check_array_file(path("u.scp/samples/npy/a.data.npy"), m.value)
            try:
                kd.check_array_file(path("u.scp/samples/npy/b.data.npy"), m.value)
            except OSError as e:
                equal(e.errno, errno.EIO, "a command that cannot be kept")
        os.environ["EPOCHFS_CACHE"] = CACHE


# ---- slow ones ----

def check_slow():
    """While a command takes long, everything else works, other commands too."""
    fresh()
    m, n = matrix(7, 3), matrix(4, 3)
    file = write("m.mat", m.raw)
    pipe = fifo("slow")
    kd.table("other", [("a", m.raw), ("b", n.raw)])
    os.unlink(f"{SOURCE}/other.scp")
    kd.script("slow.scp", ["a m.mat", f"b cat {pipe} |", "c m.mat"])
    kd.script("fast.scp", [f"a cat {file} |", f"b cat {file}; true |"])
    folder = kd.Folder(rng, "dir", 5, 2).keep("utt2spk", "text").write()
    begin = time.monotonic()
    daemon = start(SOURCE, "allow_commands")
    try:
        equal(time.monotonic() - begin < AT_ONCE, True, "mounting, seconds")
        readers = [subprocess.Popen(["cat", path("slow.scp", file)],
                                    stdout=subprocess.PIPE) for file in
                   ("samples/npy/b.data.npy", "batches/batch=1/raw/none", "samples/raw/b.data.raw")]
        wait_until(lambda: processes(pipe), "the slow command runs")
        begin = time.monotonic()
        listing = subprocess.Popen(["ls", "-a", MOUNTPOINT, path("slow.scp"), path("other.ark"),
                                    path("dir")], stdout=subprocess.PIPE)
        out, _ = listing.communicate(timeout=AT_ONCE)
        contains(out.decode(), "slow.scp", "other.ark", "fast.scp", "dataset.json", "README.txt")
        kd.check(Dataset(path("other.ark"), "ab", {"data": [m, n]}))
        kd.check(Dataset(path("fast.scp"), "ab", {"data": [m, m]}))
        kd.check(folder.dataset(path("dir/all"))[0])
        equal(content(path("slow.scp/source/slow.scp")), content(SOURCE, "slow.scp"), "source/")
        text(path("README.txt"))
        equal(status()["pid"], daemon.pid, "status.json")
        equal(time.monotonic() - begin < GOOD_IN_TIME, True, "what does not need it, seconds")
        equal(readers[0].poll(), None, "a reader of what the command puts out still waits")
        feed(pipe, n.raw)
        kd.npy_file(readers[0].communicate(timeout=AT_ONCE)[0], n.value, "what waited")
        equal(readers[2].communicate(timeout=AT_ONCE)[0], n.raw, "what waited")
        equal(readers[1].wait(AT_ONCE), 1, "a name that is not there")
        kd.check(Dataset(path("slow.scp"), "abc", {"data": [m, n, m]}))
        stop(daemon)
    finally:
        daemon.kill()
        daemon.wait()
    equal(processes(pipe), [], "processes that are left")
    with mounted(SOURCE, "allow_commands"):  # kept: no command writes to the fifo
        kd.check(Dataset(path("slow.scp"), "abc", {"data": [m, n, m]}))


def check_many_slow():
    """More slow commands than may run at once: one in each of many files, and one that is quick."""
    fresh()
    m = matrix(3, 3)
    write("m.mat", m.raw)
    pipes = [fifo(f"many{i:02d}") for i in range(20)]
    for i, pipe in enumerate(pipes):
        kd.script(f"d{i:02d}/t.scp", ["a ../m.mat", f"b cat {pipe} |"])
    kd.table("other", [("a", m.raw)])
    os.unlink(f"{SOURCE}/other.scp")
    with mounted(SOURCE, "allow_commands"):
        kd.check(Dataset(path("other.ark"), "a", {"data": [m]}))
        left = set(pipes)
        while left:  # in whatever order they are run
            ready = []

            def running():
                words = b"\0".join(command_lines())
                ready[:] = [pipe for pipe in left if pipe.encode() in words]
                return ready

            wait_until(running, f"{len(left)} commands are left, one of them runs")
            for pipe in ready:
                feed(pipe, m.raw)
                left.discard(pipe)
        for i in range(len(pipes)):
            kd.check(Dataset(path(f"d{i:02d}/t.scp"), "ab", {"data": [m, m]}), ["npy"])


def check_time_limit():
    """A command that takes too long is ended, with all processes that it started."""
    fresh()
    m = matrix(4, 4)
    file = write("m.mat", m.raw)
    pipes = [fifo(f"limit{i}") for i in range(3)]
    kd.script("t.scp", ["a m.mat", f"b cat {pipes[0]} |", f"c cat {file}; cat {pipes[1]} |",
                        f"d cat {file}; (trap '' TERM; cat {pipes[2]}) & |", f"e cat {file} |"])
    begin = time.monotonic()
    with mounted(SOURCE, "allow_commands", "command_timeout=4", log="log.limit"):
        # Processes that a shell leaves behind when it ends are also ended.
        ds = Dataset(path("t.scp"), "abcde", {"data": [m, BAD, BAD, m, m]})
        kd.check(ds)
        equal(3.9 < time.monotonic() - begin < AT_ONCE + 5, True, "a limit of 4 s, seconds")
        contains(text(ds.folder, "dataset.json") + log_text("log.limit"), "command_timeout")
        wait_until(lambda: not any(processes(pipe) for pipe in pipes), "they are ended")
    # What failed is not kept: the next mount tries again.
    with mounted(SOURCE, "allow_commands", log="log.again"):
        for pipe in pipes[:2]:
            feed(pipe, m.raw)
        kd.check(Dataset(path("t.scp"), "abcde", {"data": [m] * 5}), ["npy", "raw"])


def check_end(how):
    """The mount ends while commands run: at once, and nothing is left of them."""
    fresh()
    m = matrix(4, 4)
    write("m.mat", m.raw)
    pipe = fifo(f"end-{how}")
    kd.script("t.scp", ["a m.mat", f"b cat {pipe} |", f"c (cat {pipe} & cat {pipe}) | cat |"])
    daemon = start(SOURCE, "allow_commands", log=f"log.{how}")
    try:
        wait_until(lambda: processes(pipe), "the commands run")
        readers = [subprocess.Popen(["cat", path("t.scp/samples/npy", f"{k}.data.npy")],
                                    stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL) for k in "ab"]
        begin = time.monotonic()
        if how == "umount":
            for reader in readers:  # a mount in use cannot be unmounted
                reader.send_signal(signal.SIGINT)
                equal(reader.wait(AT_ONCE) in (0, -signal.SIGINT), True,
                      "Ctrl-C of a reader that waits")
            run("umount", MOUNTPOINT)
        else:
            daemon.terminate()
        equal(daemon.wait(AT_ONCE), 0, f"{how}: exit code")
        for reader in readers:
            reader.wait(AT_ONCE)
        equal(mount_type(MOUNTPOINT), None, how)
        equal(time.monotonic() - begin < AT_ONCE, True, f"{how}, seconds")
        wait_until(lambda: not processes(pipe), f"{how}: no process is left", seconds=AT_ONCE)
    finally:
        daemon.kill()
        daemon.wait()
    left = [n for _, _, names in os.walk(CACHE) for n in names if n.endswith(".part")]
    for name in left:  # unfinished files, if any are left, do no harm
        print(f"left in the cache folder: {name}")
    with mounted(SOURCE, "allow_commands", "command_timeout=1", log=f"log.{how}.after"):
        kd.check(Dataset(path("t.scp"), "abc", {"data": [m, BAD, BAD]}), ["npy"])


def check_shared():
    """The shared wav_in.scp, with a command and paths relative to the folder where Kaldi ran."""
    if not os.path.isdir(kd.SHARED_KALDI):
        print("without SHARED_DATA")
        return
    want = {key: kd.read_wave(content(kd.SHARED_KALDI, file))[0] for key, file in (
        ("kaldi-test", "kaldi/test.wav"), ("stereo", "wav/stereo.wav"), ("mono0",
                                                                         "wav/mono_c0.wav"),
        ("mono1", "wav/mono_c1.wav"))}
    fresh()
    shutil.copytree(kd.SHARED_KALDI, SOURCE, dirs_exist_ok=True)
    os.chdir(SOURCE)
    for options, mono1 in (([], BAD), (["allow_commands"], want["mono1"])):
        with mounted(SOURCE, *options, log="log.shared"):
            items = [Item("wave",
                          wave) for wave in (want | {"mono1": mono1}).values() if wave != BAD]
            items += [BAD] if mono1 == BAD else []
            kd.check_names(Dataset(path("wav_in.scp"), want, {"data": items}))
            ds = Dataset(path("wav_in.scp"), want, {"data": items})
            for i in range(4):
                kd.check_sample(ds, i)
    os.chdir(PRIVATE)
    subprocess.run(["chmod", "-R", "u+w", SOURCE], check=True)


check_refused()
check_allowed()
check_surroundings()
check_failing()
check_failing_often()
check_once()
check_kept_damage()
check_slow()
check_many_slow()
check_time_limit()
check_end("umount")
check_end("SIGTERM")
check_shared()
equal(os.listdir(MOUNTPOINT), [], "nothing is mounted")
