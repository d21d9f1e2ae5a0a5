"""A Slurm cluster of two nodes in namespaces of its own: other programs see neither its processes
nor its mounts nor its ports, and all of it ends with the case.

    slurm.enter()                      goes on inside; skips without namespaces
    with slurm.Cluster() as cluster:   cluster.submit(...), cluster.wait_over(job), ...

Jobs are those of an ordinary user. The scripts are copies of mount-scripts/slurm, as installed.
"""

import contextlib
import fcntl
import glob
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys

from lib import DEADLINE, EPOCHFS, PRIVATE, content, equal, skip, text
from servers import answers, end_process, files_below, locks_in, wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
USER = 65534
AS_USER = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
os.environ["PATH"] += ":/usr/sbin:/sbin"

SIOCSIFFLAGS, SIOCSIFADDR, IFF_UP = 0x8914, 0x8916, 0x1

# The first process reaps orphans, as init does.
INSIDE = 'mount --bind "$1" /dev/fuse; EPOCHFS_INSIDE=yes "${@:2}" & wait "$!"'
NAMESPACES = ["unshare", "--mount", "--propagation", "private", "--net", "--pid", "--fork",
              "--kill-child", "--mount-proc"]

CONF = """
ClusterName=loop
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={dir}/munge.sock
SlurmUser=root
SlurmdUser=root
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool.%n
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd.%n.pid
ProctrackType=proctrack/{proctrack}
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0
SlurmdParameters=config_overrides
KillWait={kill_wait}
UnkillableStepTimeout=10
NodeName={nodes} NodeHostname={host} NodeAddr=127.0.0.1 Port=[6818-6819] CPUs=8 RealMemory=4000
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP
Prolog={dir}/prolog
Epilog={dir}/epilog
TaskProlog={dir}/task-prolog
PrologFlags=Alloc
"""

# Our script, with the settings of this cluster; it records when it began and ended.
WRAPPER = """#!/bin/bash
export EPOCHFS_SLURM_SETTINGS={dir}/settings.sh
begin=$EPOCHREALTIME code=0
{tools}/{name} || code=$?
end=$EPOCHREALTIME
out={dir}/{name}.$SLURM_JOB_ID.$SLURMD_NODENAME
echo "$code $begin $end" >"$out.new"
mv "$out.new" "$out"
exit "$code"
"""

# Each "node" has a disk of its own for its jobs.
TASK_PROLOG = """#!/bin/bash
export EPOCHFS_SLURM_SETTINGS={dir}/settings.sh
echo "export SLURM_TMPDIR={dir}/tmp.$SLURMD_NODENAME"
exec {tools}/task-prolog
"""


def missing():
    """Why a cluster is impossible here; None: it is possible."""
    if subprocess.run([*NAMESPACES, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        return "namespaces of our own are not allowed here"
    return None


def enter():
    """Run this program again in its own namespaces; inside, the call returns."""
    if os.environ.get("EPOCHFS_INSIDE"):
        loopback_up()
        if subprocess.run([*AS_USER, "test", "-w", "/dev/fuse"], check=False).returncode:
            skip("an ordinary user cannot be given /dev/fuse here")
        return
    reason = missing()
    if reason:
        skip(reason)
    node = f"{PRIVATE}/fuse"  # an ordinary user may not be allowed to open the real one
    os.mknod(node, 0o020666, os.makedev(10, 229))
    os.chmod(node, 0o666)
    os.execvp(NAMESPACES[0], [*NAMESPACES, "bash", "-euc", INSIDE, "bash", node,
                              sys.executable, *sys.argv])


def loopback_up():
    """Bring up the loopback device with a second address: with 127.0.0.1 alone, getaddrinfo() does
    not answer Slurm's query."""
    address = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton("192.0.2.1"))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", IFF_UP))
        fcntl.ioctl(s, SIOCSIFADDR, struct.pack("16s16s8x", b"lo:1", address))


def program(path, source):
    with open(path, "w", encoding="utf-8") as f:
        f.write(source)
    os.chmod(path, 0o755)
    return path


class Cluster:
    """settings: text for settings.sh, besides the paths."""

    def __init__(self, settings="", proctrack="linuxproc", kill_wait=5):
        self.dir = f"{PRIVATE}/slurm"
        self.tools = f"{self.dir}/tools"
        self.epochfs = f"{self.dir}/bin/epochfs"  # daemons run from this file
        self.task = f"{self.dir}/slurm_task.py"
        self.proctrack = proctrack
        name = f"e{os.getppid()}x{int.from_bytes(os.urandom(3), 'big')}n"  # cgroups are named by it
        self.nodes = [f"{name}1", f"{name}2"]
        self.processes = []  # munged, slurmctld, slurmd of each node
        self.make_folders()
        self.make_tools(settings)
        self.make_conf(name, kill_wait)

    def make_folders(self):
        os.chmod(PRIVATE, 0o755)
        os.chown(PRIVATE, USER, USER)  # for the logs of sanitizers
        for name in ("", "state", "out", "bin"):
            os.makedirs(f"{self.dir}/{name}", exist_ok=True)
        for node in self.nodes:
            os.mkdir(f"{self.dir}/spool.{node}")
            os.mkdir(f"{self.dir}/tmp.{node}")
            os.chmod(f"{self.dir}/tmp.{node}", 0o1777)
        os.chown(f"{self.dir}/out", USER, USER)

    def make_tools(self, settings):
        shutil.copytree(os.path.join(HERE, "../../mount-scripts/slurm"), self.tools)
        for name in ("peers", "mounts.sh"):
            shutil.copy(os.path.join(HERE, "../../mount-scripts", name), self.dir)
        shutil.copy(EPOCHFS, self.epochfs)
        shutil.copy(os.path.join(HERE, "slurm", "task.py"), self.task)
        sanitizers = "".join(f"export {name}='{value}'\n" for name, value in os.environ.items()
                             if name.endswith("SAN_OPTIONS"))
        wrapper = program(f"{self.dir}/epochfs", f'#!/bin/bash\n{sanitizers}exec {self.epochfs} "$@"\n')
        with open(f"{self.dir}/settings.sh", "w", encoding="utf-8") as f:
            f.write(f"jobs={self.dir}/jobs.$SLURMD_NODENAME\nepochfs={wrapper}\n"
                    f"peers_key={self.dir}/munge.key\n{settings}\n")
        for name in ("prolog", "epilog"):
            program(f"{self.dir}/{name}",
                    WRAPPER.format(dir=self.dir, tools=self.tools, name=name))
        program(f"{self.dir}/task-prolog", TASK_PROLOG.format(dir=self.dir, tools=self.tools))

    def make_conf(self, name, kill_wait):
        host = socket.gethostname().split(".")[0]
        with open(f"{self.dir}/slurm.conf", "w", encoding="utf-8") as f:
            f.write(CONF.format(dir=self.dir, host=host, proctrack=self.proctrack,
                                nodes=f"{name}[1-2]", kill_wait=kill_wait))
        with open(f"{self.dir}/cgroup.conf", "w", encoding="utf-8") as f:
            f.write("CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\n")
        self.environment = {"PATH": os.environ["PATH"], "LC_ALL": "C",
                            "SLURM_CONF": f"{self.dir}/slurm.conf", "EPOCHFS_SLURM": self.tools,
                            "EPOCHFS": f"{self.dir}/epochfs", "PYTHONDONTWRITEBYTECODE": "1"}

    # ---- its daemons ----

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.processes[::-1]:
            end_process(process)
        if self.proctrack == "cgroup":
            for node in self.nodes:
                remove_cgroups(node)

    def daemon(self, name, *arguments):
        with open(f"{self.dir}/{name}.out", "wb") as out:
            self.processes.append(subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=out,
                                                   stderr=out, env=self.environment))
        return self.processes[-1]

    def start_node(self, node):
        return self.daemon(node, "slurmd", "-D", "-N", node)

    def start(self):
        d = self.dir
        with open(f"{d}/munge.key", "wb") as f:
            os.fchmod(f.fileno(), 0o400)
            f.write(os.urandom(128))
        munged = self.daemon(
            "munged", "munged", "--foreground", "--force", f"--key-file={d}/munge.key",
            f"--socket={d}/munge.sock", f"--pid-file={d}/munge.pid", f"--log-file={d}/munge.log",
            f"--seed-file={d}/munge.seed", "--num-threads=2")
        wait_until(lambda: os.path.exists(f"{d}/munge.sock"), "munged answers", munged)
        controller = self.daemon("slurmctld", "slurmctld", "-D")
        for node in self.nodes:
            self.start_node(node)
        try:
            wait_until(lambda: answers(6817), "slurmctld answers", controller)
            wait_until(self.idle, "two idle nodes", controller)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.logs()}") from e

    def logs(self):
        return "\n".join(f"--- {name}\n" + text(self.dir, f"{name}.out")[-1500:]
                         for name in ("munged", "slurmctld", *self.nodes))

    def idle(self):
        return self.call("sinfo", "--noheader", "--states=idle", "--format=%D", code=None).strip() == "2"

    def resume(self):
        """Slurm takes a node out of service if a task did not end when it was killed."""
        for node in self.nodes:
            if "drain" in self.call("sinfo", "--noheader", f"--nodes={node}", "--format=%T"):
                subprocess.run(["scontrol", "update", f"NodeName={node}", "State=RESUME"], check=True,
                               env=self.environment)
        wait_until(self.idle, "two idle nodes", self.processes[1])

    # ---- jobs ----

    def call(self, *arguments, code=0):
        """Run a program as the user."""
        done = subprocess.run([*AS_USER, *arguments], stdin=subprocess.DEVNULL, cwd=f"{self.dir}/out",
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=DEADLINE,
                              env=self.environment, check=False)
        said = done.stdout.decode(errors="replace")
        if code is not None:
            equal(done.returncode, code, f"{arguments}: {said}\n{self.logs() if code == 0 else ''}")
        return said

    def submit(self, *arguments, **environment):
        """sbatch with two nodes of two tasks: the job's number."""
        before = dict(self.environment)
        self.environment.update(environment)
        try:
            return int(self.call("sbatch", "--parsable", "--nodes=2", "--ntasks-per-node=2",
                                 f"--output={self.dir}/out/%j", *arguments))
        finally:
            self.environment = before

    def batch(self, lines, *arguments, **environment):
        """A job of these lines of bash."""
        path = program(f"{self.dir}/batch.sh", f"#!/bin/bash\nset -e\n{lines}\n")
        return self.submit(*arguments, path, **environment)

    def output(self, job):
        return text(self.dir, "out", str(job))

    def show(self, job, word):
        found = re.search(rf"\b{word}=(\S*)", self.call("scontrol", "show", "job", str(job)))
        return found[1] if found else None

    def state(self, job):
        """How it ended."""
        return wait_until(lambda: (found := self.show(job, "JobState")) != "COMPLETING" and found,
                          f"job {job} has a state", self.processes[1])

    def wait_for(self, job, condition, what):
        """Wait until the condition is true; fails if the job ends."""
        def look():
            return condition() or self.is_over(job)
        wait_until(look, f"job {job}: {what}", self.processes[1])
        equal(bool(condition()), True, f"job {job}: {what} before it ended: {self.output(job)}")

    def wait_tasks(self, job, what, n=4):
        """Wait until n of its tasks have written that file, see slurm/task.py."""
        self.wait_for(job, lambda: len(glob.glob(f"{self.dir}/out/{job}.*.{what}")) >= n, what)

    def reading(self, source, *arguments):
        """Start a job that reads for ever; returns when its tasks have begun."""
        job = self.batch(f"srun {self.task} forever", f"--comment=epochfs:{source}", *arguments)
        self.wait_tasks(job, "reading")
        equal(len(self.mounts()), 2, "a mount on each node")
        return job

    def check_next_job(self, source, samples, what):
        """Nothing of the last job is left, and a new job works."""
        self.check_nothing_left(what)
        job = self.batch(f"srun {self.task} epoch", f"--comment=epochfs:{source}")
        self.wait_over(job)
        self.check_union(job, samples)
        self.check_nothing_left(f"the job after {what}")

    def is_over(self, job):
        return len(glob.glob(f"{self.dir}/epilog.{job}.*[12]")) == len(self.nodes)

    def wait_over(self, job, seconds=DEADLINE):
        """Wait until the job's epilogs have ended; returns its output."""
        try:
            wait_until(lambda: self.is_over(job), f"the end of job {job}", self.processes[1], seconds)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.output(job)}\n{self.logs()}") from e
        for name in ("prolog", "epilog"):
            for path in glob.glob(f"{self.dir}/{name}.{job}.*[12]"):
                equal(text(path).split()[0], "0", f"exit code of {path}")
        return self.output(job)

    def seconds(self, name, job):
        """The seconds that the script took on the slower node."""
        times = [text(path).split() for path in glob.glob(f"{self.dir}/{name}.{job}.*[12]")]
        return max(float(end) - float(begin) for _, begin, end in times)

    # ---- processes, mounts, files ----

    def daemons(self):
        """Processes of epochfs, the daemons (with many threads) first."""
        found = []
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and os.readlink(f"/proc/{name}/exe") == self.epochfs:
                    found.append((-len(os.listdir(f"/proc/{name}/task")), int(name)))
            except OSError:
                pass  # it has just ended
        return [pid for _, pid in sorted(found)]

    def kill_daemons(self, number=signal.SIGKILL):
        """Kill the daemons of all mounts, but not their supervisors."""
        for pid in self.daemons()[:len(self.mounts())]:
            os.kill(pid, number)

    def shells(self, script):
        """Shells that run one of our scripts."""
        found = []
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                words = content(path).split(b"\0")
            except OSError:
                continue  # it has just ended
            if f"{self.tools}/{script}".encode() in words[1:2]:
                found.append(int(path.split("/")[2]))
        return found

    def mounts(self):
        """Mounts of jobs, without other mounts of this machine."""
        with open("/proc/self/mountinfo", encoding="utf-8") as f:
            return [line.split()[4] for line in f
                    if " - fuse.epochfs " in line and line.split()[4].startswith(f"{self.dir}/")]

    def left(self):
        """Files and folders of jobs."""
        return [path for node in self.nodes for kind in ("jobs", "tmp")
                for path in glob.glob(f"{self.dir}/{kind}.{node}/*")]

    def check_nothing_left(self, what, caches=None):
        """caches: a folder with caches that are kept."""
        equal((self.mounts(), self.daemons(), self.left()), ([], [], []),
              f"{what}: mounts, processes and files that are left")
        if caches:
            equal(locks_in(caches), [], f"{what}: locks that are left")
            equal([path for path, _ in files_below(caches) if path.endswith(".part")], [],
                  f"{what}: unfinished files that are left")

    def check_union(self, job, samples, n=4):
        """Together, n tasks must have read each sample once."""
        import numpy as np
        ranks = [np.load(path) for path in sorted(glob.glob(f"{self.dir}/out/{job}.*.read.npy"))]
        equal(len(ranks), n, f"job {job}: tasks that have read")
        equal(sorted(np.concatenate(ranks).tolist()), list(range(samples)), f"job {job}: samples")


def kill_tasks(number=signal.SIGKILL):
    """Send a signal to tasks and batch scripts, which slurmstepd has started."""
    found = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            head, _, rest = text(path).rpartition(")")
        except OSError:
            continue  # it has just ended
        pid, _, name = head.partition(" (")
        found[int(pid)] = (name, int(rest.split()[1]))
    tasks = [pid for pid, (_, parent) in found.items() if found.get(parent, ("",))[0] == "slurmstepd"]
    equal(len(tasks) >= 4, True, f"tasks: {tasks}")
    for pid in tasks:
        with contextlib.suppress(ProcessLookupError):  # its job ends when another task has
            os.kill(pid, number)


def remove_cgroups(node):
    """Remove the cgroups that slurmd makes for a node and leaves behind."""
    for top in glob.glob(f"/sys/fs/cgroup/*/slurm_{node}"):
        for folder, _, _ in os.walk(top, topdown=False):
            os.rmdir(folder)
