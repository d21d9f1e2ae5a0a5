#!/usr/bin/python3
# slow: each script, with each kind of link
"""Scripts that root runs, against users who control source, path, files and answers of their mounts: every link leads to a
file or mount that this case has planted."""

import os
import shutil
import socket
import stat
import subprocess
import sys
import time

import prometheus
import users
from lib import DEADLINE, PRIVATE, SOURCE, contains, content, equal, mount_type, small, text
from users import User

users.may_mount(__file__)

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../mount-scripts")
HOSTILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../hostile_fuse.py")
OUT, JOBS, HOOKS = f"{PRIVATE}/out", f"{PRIVATE}/jobs", f"{PRIVATE}/hooks"
SECRET = f"{PRIVATE}/secret"
ODD = (r"user_id=0\,group_id=0", r"x - fuse.epochfs y rw\,user_id=0\,group_id=0", "a\\\\b\tc\nd", "/etc/passwd")
HOOKED = ("mktemp", "setpriv", "timeout", "stat", "iconv")


def planted():
    os.mkdir(OUT)
    os.mkdir(HOOKS)
    with open(SECRET, "w", encoding="ascii") as f:
        f.write("# HELP epochfs_secret A secret.\n# TYPE epochfs_secret gauge\nepochfs_secret 42\n")
    os.chmod(SECRET, 0o600)
    with open(f"{HOOKS}/fuse.conf", "w", encoding="ascii") as f:
        f.write("user_allow_other\n")  # so that root may ask, and wait
    subprocess.run(["mount", "--bind", f"{HOOKS}/fuse.conf", "/etc/fuse.conf"], check=True)
    with open(f"{HOOKS}/syslog", "w", encoding="ascii"):
        pass
    if shutil.which("logger"):
        with open(f"{HOOKS}/logger", "w", encoding="ascii") as f:
            f.write(f'#!/bin/bash\necho "$*" >>{HOOKS}/syslog\n')
        os.chmod(f"{HOOKS}/logger", 0o755)
        subprocess.run(["mount", "--bind", f"{HOOKS}/logger", os.path.realpath(shutil.which("logger"))], check=True)
    # Programs that the scripts call run a command of the test first: between two of their steps.
    for name in HOOKED:
        real = shutil.which(name)
        copy = f"{HOOKS}/{name}"
        shutil.copy(real, copy)
        with open(f"{copy}.sh", "w", encoding="ascii") as f:
            f.write(f'#!/bin/bash\n[[ ! -x {HOOKS}/hook ]] || {HOOKS}/hook "{name}" "$@" >&2\nexec -a {name} {copy} "$@"\n')
        os.chmod(f"{copy}.sh", 0o755)
        subprocess.run(["mount", "--bind", f"{copy}.sh", os.path.realpath(real)], check=True)


def hook(lines):
    """Run these lines at each call of a hooked program; the calls are counted in $n."""
    with open(f"{HOOKS}/calls", "w", encoding="ascii"):
        pass
    os.chmod(f"{HOOKS}/calls", 0o666)
    os.chmod(HOOKS, 0o777)
    with open(f"{HOOKS}/new", "w", encoding="utf-8") as f:
        f.write(f"#!/bin/bash\nprintf '%s\\0' \"$*\" >>{HOOKS}/calls\nn=$(tr -cd '\\0' <{HOOKS}/calls | wc -c)\n{lines}\n")
    os.chmod(f"{HOOKS}/new", 0o755)
    os.rename(f"{HOOKS}/new", f"{HOOKS}/hook")


def calls():
    return content(HOOKS, "calls").decode(errors="replace").split("\0")


def script(name, *arguments, limit=DEADLINE, **environment):
    """Returns what it says, and what syslog has."""
    done = subprocess.run([f"{SCRIPTS}/{name}", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=limit, check=False, cwd="/",
                          env={"PATH": os.environ["PATH"], "EPOCHFS": eve.binary,
                               "EPOCHFS_SLURM_SETTINGS": f"{PRIVATE}/settings.sh", **environment})
    said = done.stdout.decode(errors="replace") + text(HOOKS, "syslog")
    equal(done.returncode, 0, f"exit code of {name}: {said}")
    return said


def metrics(*mountpoints):
    said = script("prometheus-textfile", OUT, *mountpoints)
    found = content(OUT, "epochfs.prom")
    prometheus.promtool(found)
    return said, prometheus.parse(found)


def ups(families):
    return {dict(labels)["mountpoint"]: value for (_, labels), value in families["epochfs_up"].samples.items()}


def folder_of(user, *parts):
    path = os.path.join(user.home, *parts)
    user.do("mkdir", "-p", path)
    return path


def mounted(user, *options, at=None):
    user.run("mount", *(word for o in options for word in ("-o", o)), SOURCE, at or user.mountpoint)


def hostile(user, at, what, options="fsname=x,allow_other"):
    process = user.start(sys.executable, HOSTILE, at, options, what)
    equal(process.stdout.readline(), "mounted\n", "a file system of the user")
    return process


def swap_at(user, at, target, k):
    above, gone = os.path.dirname(at), os.path.dirname(at) + ".gone"
    hook(f"if ((n == {k})); then mv {above} {gone}; ln -s {target} {above}; fi")
    return above, gone


def swap_back(above, gone):
    if os.path.islink(above):
        os.unlink(above)
        os.rename(gone, above)


def collector_and_links():
    """The folder above a mountpoint becomes a link, at every moment of the script."""
    above = folder_of(eve, "swapped")
    trap = folder_of(eve, "trap", "m", ".epochfs")
    os.symlink(SECRET, f"{trap}/metrics")
    at = folder_of(eve, "swapped", "m")
    mounted(eve, at=at)
    for k in range(1, 9):
        places = swap_at(eve, at, f"{eve.home}/trap", k)
        metrics()
        equal(b"secret" in content(OUT, "epochfs.prom"), False, f"a file of root, swapped at call {k}")
        swap_back(*places)
    os.unlink(f"{HOOKS}/hook")
    equal(ups(metrics()[1]), {at: 1}, "afterwards")
    eve.run("umount", at)
    equal(os.path.isdir(above), True, "the folder")


def collector_and_names():
    """Sources and paths with what the kernel's table escapes; nothing is done as root."""
    paths = []
    for i, (name, source) in enumerate(zip(("a b", "c\td\ne\n", "f\\040g", 'h"\\'), ODD)):
        paths.append(folder_of(eve, name))
        processes.append(hostile(eve, paths[-1], "epochfs_x 1\n", f"fsname={source}"))
        hook(":")
        families = metrics()[1]
        equal(ups(families), dict.fromkeys(paths, 1), f"mounts that answer, with {source!r}")
        equal([call for call in calls() if "--reuid=0" in call], [], "as root")
        equal(len([call for call in calls() if f"--reuid={eve.uid}" in call]) >= i + 1, True, f"as the user: {calls()}")
    os.unlink(f"{HOOKS}/hook")


def collector_and_answers():
    """What a file system of a user says cannot spoil the series of others."""
    mounted(ann)
    head = "# TYPE epochfs_a gauge\n"
    for bad in (f"link:{SECRET}", "hang", 'epochfs_up{mountpoint="%s"} 0\n' % ann.mountpoint, "node_load1 1\n",
                f"# MOUNTPOINT {ann.mountpoint}\nepochfs_a 2\n", head + "epochfs_a 1\nepochfs_a 1\n", head + "epochfs_a{b=1} 1\n",
                head + 'epochfs_a{b="1",b="2"} 1\n', head + 'epochfs_a{b="1",c="2"} 1\nepochfs_a{c="2",b="1"} 1\n',
                head + "epochfs_a 1e999\n", head + "epochfs_a 1.2.3\n", "# TYPE epochfs_a summary\nepochfs_a 1\n",
                "# HELP epochfs_a \\x\n" + head + "epochfs_a 1\n", head + 'epochfs_a{b="\\x"} 1\n', "big", "zeros",
                "# TYPE epochfs_remote_wait_seconds gauge\nepochfs_remote_wait_seconds 1\n",
                '# TYPE epochfs_remote_wait_seconds histogram\nepochfs_remote_wait_seconds_bucket{le="x"} 1\n'):
        process = hostile(eve, eve.mountpoint, bad)
        _, families = metrics()
        equal(ups(families)[ann.mountpoint], 1, f"the other mount, after {bad!r:.80}")
        equal({dict(labels)["mountpoint"] for name, family in families.items() if name != "epochfs_up"
               for _, labels in family.samples}, {ann.mountpoint}, f"mounts with numbers, after {bad!r:.80}")
        process.kill()
        eve.do("fusermount3", "-u", "-z", eve.mountpoint)
        process.wait()
    many = ",".join(f'a{i}="1"' for i in range(32000 // 4))
    start = time.monotonic()
    for bad in (head + "epochfs_a{" + many + "} 1\n", head + "epochfs_a{" + ",".join(f'a{i}="1"' for i in range(65)) + "} 1\n",
                head + 'epochfs_a{b="' + "x" * 17000 + '"} 1\n'):
        process = hostile(eve, eve.mountpoint, bad)
        contains(metrics()[0], "its metrics are ignored: they are not those of epochfs")
        process.kill()
        eve.do("fusermount3", "-u", "-z", eve.mountpoint)
        process.wait()
    equal(time.monotonic() - start < 60, True, "time for series of many labels")
    good = "# HELP epochfs_a A.\n" + head + 'epochfs_a{b="1",mountpoint="/elsewhere"} 2\n'
    process = hostile(eve, eve.mountpoint, good)
    equal(dict(list(metrics()[1]["epochfs_a"].samples)[0][1]), {"mountpoint": eve.mountpoint, "b": "1"}, "labels")
    process.kill()
    eve.do("fusermount3", "-u", "-z", eve.mountpoint)
    process.wait()
    ann.umount()


def clean_and_links():
    """A dead mount whose path leads to a mount of root; a source that looks like root's."""
    at = folder_of(eve, "swapped", "m")
    foreign = f"{PRIVATE}/foreign"
    os.makedirs(f"{foreign}/m")
    subprocess.run(["mount", "-t", "tmpfs", "foreign", f"{foreign}/m"], check=True)
    for source in ODD[:2]:
        for k in range(1, 7):
            process = hostile(eve, at, "", f"fsname={source}")
            process.kill()
            process.wait()
            places = swap_at(eve, at, foreign, k)
            script("slurm/clean")
            equal([call for call in calls() if "--reuid=0" in call], [], "as root")
            swap_back(*places)
            equal(mount_type(f"{foreign}/m"), "tmpfs", f"a mount of root, swapped at call {k}")
            os.unlink(f"{HOOKS}/hook")
            said = script("slurm/clean")
            equal(mount_type(at), None, f"the dead mount of source {source!r}: {said}")
    subprocess.run(["umount", f"{foreign}/m"], check=True)


def make_job(job):
    """A folder as prolog leaves it, of a job of ann that has ended."""
    folder = f"{JOBS}/{job}"
    for name in ("mnt", "cache"):
        os.makedirs(f"{folder}/{name}", exist_ok=True)
        os.chown(f"{folder}/{name}", ann.uid, ann.uid)
    for name, value in (("boot", text("/proc/sys/kernel/random/boot_id")), ("uid", f"{ann.uid}\n")):
        with open(f"{folder}/{name}", "w", encoding="ascii") as f:
            f.write(value)
    return folder


def epilog(job, limit=DEADLINE, **settings):
    with open(f"{PRIVATE}/settings.sh", "w", encoding="ascii") as f:
        f.write(f"jobs={JOBS}\nepochfs={ann.binary}\nend_limit=2\n" + "".join(f"{k}={v}\n" for k, v in settings.items()))
    began = time.monotonic()
    said = script("slurm/epilog", limit=limit, SLURM_JOB_ID=str(job), SLURM_JOB_UID=str(ann.uid))
    return said, time.monotonic() - began


def epilog_and_sources():
    """Mounts of another user whose sources are the job's mountpoint."""
    folder = make_job(77)
    mine = [folder_of(eve, "one"), folder_of(eve, "two")]
    for at in mine:
        processes.append(hostile(eve, at, "", f"fsname={folder}/mnt"))
    said, _ = epilog(77)
    equal((os.path.exists(folder), [mount_type(at) for at in mine]), (False, ["fuse.epochfs"] * 2),
          f"the job's folder, and mounts of another user: {said}")


def epilog_and_mounts():
    """The job's user has mounted what does not answer: on everything, one on another, one in another."""
    folder = make_job(78)
    inner = f"{folder}/cache/inner"
    ann.do("mkdir", inner)
    for at, what in ((inner, "hang"), (f"{folder}/cache", "hang"), (f"{folder}/mnt", "x"), (f"{folder}/mnt", "hang")):
        processes.append(hostile(ann, at, what))
    said, _ = epilog(78)
    equal(os.path.exists(folder), False, f"the job's folder: {said}")


def epilog_and_time():
    """Files that cannot be removed in time: the epilog ends, and clean goes on."""
    folder = make_job(79)
    ann.do("touch", f"{folder}/cache/file")
    real = shutil.copy(shutil.which("rm"), f"{HOOKS}/rm")
    with open(f"{HOOKS}/rm.sh", "w", encoding="ascii") as f:
        f.write(f'#!/bin/bash\n[[ "$*" != *{folder}/* ]] || exec tail -f /dev/null\nexec {real} "$@"\n')
    os.chmod(f"{HOOKS}/rm.sh", 0o755)
    where = os.path.realpath(shutil.which("rm"))
    subprocess.run(["mount", "--bind", f"{HOOKS}/rm.sh", where], check=True)
    said, seconds = epilog(79, all_limit=2)
    subprocess.run(["umount", where], check=True)
    equal(seconds < 30, True, f"seconds of the epilog: {seconds}")
    contains(said, "is not removed yet")
    equal(sorted(os.listdir(folder)), ["boot", "cache", "ended", "mnt", "uid"], "what is left")
    script("slurm/clean")
    equal(os.path.exists(folder), False, "after clean")


def prolog_and_secrets():
    """A presigned URL that is not mounted in time: its query is in no file that others read, in no message, in no list of
    processes."""
    with open(f"{PRIVATE}/settings.sh", "w", encoding="ascii") as f:
        f.write(f"jobs={JOBS}\nepochfs={ann.binary}\nmount_limit=3\n")
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/x?X-Amz-Signature=5ECRET"
        process = subprocess.Popen([f"{SCRIPTS}/slurm/prolog"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, env={
                                       "EPOCHFS_SLURM_SETTINGS": f"{PRIVATE}/settings.sh", "SLURM_JOB_ID": "80",
                                       "SLURM_JOB_UID": str(ann.uid), "SLURM_JOB_COMMENT": f"epochfs:{url} patience=600,timeout=600"})
        server.settimeout(DEADLINE)
        connection, _ = server.accept()  # epochfs has read its arguments
        shown = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                shown.append(content("/proc", pid, "cmdline"))
            except OSError:
                pass  # it has just ended
        equal([line for line in shown if b"5ECRET" in line], [], "the list of processes")
        said = process.communicate(timeout=DEADLINE)[0] + text(HOOKS, "syslog")
        connection.close()
    equal(process.returncode, 0, said)
    log = f"{JOBS}/80/log"
    equal(stat.S_IMODE(os.stat(log).st_mode), 0o600, "mode of log")
    equal(os.stat(log).st_uid, ann.uid, "owner of log")
    contains(text(log), "was not mounted in 3 s")
    told = script("slurm/task-prolog", SLURM_JOB_ID="80")
    contains(told, "was not mounted in 3 s")
    for what in (said, text(log), told, text(JOBS, "80/mnt/ERROR.txt")):
        equal("5ECRET" in what, False, f"a secret in {what}")
    epilog(80)
    equal(os.path.exists(f"{JOBS}/80"), False, "after the epilog")


processes = []
planted()
small()
ann, eve = User("ann"), User("eve")
with open(f"{PRIVATE}/settings.sh", "w", encoding="ascii") as settings_file:
    settings_file.write(f"jobs={JOBS}\nend_limit=2\n")
os.mkdir(JOBS)
for test in (collector_and_links, collector_and_names, collector_and_answers, clean_and_links, epilog_and_sources,
             epilog_and_mounts, epilog_and_time, prolog_and_secrets):
    print(test.__name__, flush=True)
    test()
