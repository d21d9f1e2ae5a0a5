#!/usr/bin/python3
# needs: systemd
"""The files of mount-scripts/systemd: systemd accepts the units, and their commands work: the
service is ready when the mount answers, has the rights it needs, is mounted again after its daemon
was killed, and leaves nothing behind. The lines for fstab become the right units."""

import os
import re
import shutil
import signal
import socket
import subprocess

from lib import CACHE, DEADLINE, EPOCHFS, PRIVATE, SOURCE, content, equal, mount_type, small
from page_blocks import take
from servers import timed

HERE = os.path.dirname(os.path.abspath(__file__))
SYSTEMD = os.path.join(HERE, "../../../mount-scripts/systemd")
GENERATOR = "/lib/systemd/system-generators/systemd-fstab-generator"
AT = f"{PRIVATE}/mounted here"
PAGE = dict(line.split("=", 1) for line in take("docs/cluster.md", "SOURCE=https://data.example.org").splitlines())
CONF = dict(PAGE, SOURCE=f"{PRIVATE}/a source", MOUNTPOINT=AT)


def unit_text(name):
    return content(SYSTEMD, name).decode()


def settings():
    """Section.Key -> value, of the service."""
    found, section = {}, ""
    for line in unit_text("epochfs@.service").replace("\\\n", "").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found[f"{section}.{key}"] = value
    return found


UNIT = settings()


# ---- what systemd says ----

def systemd_verify(*files):
    """systemd-analyze has no complaint about these units."""
    if not shutil.which("systemd-analyze"):
        print("without systemd-analyze (package systemd)")
        return
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *files],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=DEADLINE, check=False)
    names = [os.path.basename(file).split("@")[0] for file in files]
    said = [line for line in done.stdout.decode().splitlines()
            if any(name in line for name in names)]
    equal(said, [], "systemd-analyze verify")
    equal(done.returncode, 0, f"exit code of systemd-analyze: {done.stdout.decode()}")


def check_unit():
    folder = f"{PRIVATE}/units"
    os.makedirs(folder)
    text = unit_text("epochfs@.service")
    with open(f"{folder}/epochfs@test.service", "w", encoding="utf-8") as f:
        f.write(text.replace("ExecStart=epochfs", f"ExecStart={EPOCHFS}"))
    systemd_verify(f"{folder}/epochfs@test.service")
    # Settings that would hide the mount from other processes.
    for word in ("ProtectSystem", "ProtectHome", "PrivateTmp", "PrivateDevices", "PrivateMounts",
                 "ReadOnlyPaths", "InaccessiblePaths", "ProtectKernel", "ProtectControlGroups",
                 "RootDirectory", "DynamicUser", "BindPaths", "TemporaryFileSystem", "ProtectProc"):
        equal([key for key in UNIT if key.startswith(f"Service.{word}")], [], f"{word} in the unit")


def generated(fstab):
    """name -> text of the units that systemd makes from a fstab."""
    out = f"{PRIVATE}/generated"
    folders = [f"{out}/{kind}" for kind in ("normal", "early", "late")]
    for folder in folders:
        os.makedirs(folder)
    with open(f"{PRIVATE}/fstab", "w", encoding="utf-8") as f:
        f.write(fstab)
    subprocess.run([GENERATOR, *folders], check=True, stdin=subprocess.DEVNULL, timeout=DEADLINE,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env=dict(os.environ, SYSTEMD_FSTAB=f"{PRIVATE}/fstab"))
    return {name: content(folders[0], name).decode() for name in os.listdir(folders[0])
            if os.path.isfile(f"{folders[0]}/{name}")}


def check_fstab():
    """The lines of fstab.example."""
    if not os.access(GENERATOR, os.X_OK):
        print("without systemd-fstab-generator (package systemd)")
        return
    units = generated(unit_text("fstab.example"))
    for line in unit_text("fstab.example").splitlines():
        if not line or line.startswith("#"):
            continue
        source, where, kind, options, _, _ = line.split()
        name = where.strip("/").replace("/", "-")
        text = units[f"{name}.mount"]
        equal([re.search(f"^{key}=(.*)$", text, re.M)[1] for key in ("What", "Where", "Type")],
              [source, where, kind], f"{name}.mount")
        given = re.search("^Options=(.*)$", text, re.M)[1].split(",")
        equal(set(given) <= set(options.split(",")), True, f"options of {name}: {given}")
        equal(f"{name}.automount" in units, "x-systemd.automount" in options, f"{name}.automount")
    systemd_verify(*(f"{PRIVATE}/generated/normal/{name}" for name in units))


# ---- what it would run ----

def words(line):
    """The words of an Exec line, with the values of CONF."""
    return [re.sub(r"\$\{(\w+)\}", lambda m: CONF[m[1]], word) for word in line.split()]


def with_rights(command):
    """The command, run with the unit's restricted rights."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        return command
    kept = ",".join("+" + word.removeprefix("CAP_").lower()
                    for word in UNIT["Service.CapabilityBoundingSet"].split())
    equal(UNIT["Service.NoNewPrivileges"], "yes", "NoNewPrivileges")
    return ["setpriv", "--no-new-privs", "--inh-caps=-all", f"--bounding-set=-all,{kept}", *command]


def environment(**more):
    return dict(os.environ, EPOCHFS_CACHE=CACHE, PATH=f"{PRIVATE}/bin:{os.environ['PATH']}",
                **CONF, **more)


def start_service(address):
    """Returns the service once it has reported that it is ready. address: of NOTIFY_SOCKET."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(address.replace("@", "\0", 1) if address.startswith("@") else address)
        s.settimeout(DEADLINE)
        with open(f"{PRIVATE}/log.service", "ab") as log:
            service = subprocess.Popen(with_rights(words(UNIT["Service.ExecStart"])),
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       env=environment(NOTIFY_SOCKET=address))
        equal(s.recv(100), b"READY=1", "what the service says")
    equal(sorted(os.listdir(AT)), [".epochfs", "README.txt", "train"], "the mount answers")
    return service


def stop_post(result):
    """Run the commands for the end of the service; returns their output."""
    line = UNIT["Service.ExecStopPost"]
    script = re.fullmatch(r"-/bin/sh -c '(.*)'", line)[1].replace("$$", "$")
    done = subprocess.run(["/bin/sh", "-c", script], stdin=subprocess.DEVNULL, timeout=DEADLINE,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          env=environment(SERVICE_RESULT=result))
    return done.stdout


def check_service():
    os.makedirs(AT)
    os.makedirs(f"{PRIVATE}/bin")
    os.symlink(EPOCHFS, f"{PRIVATE}/bin/epochfs")
    equal((UNIT["Service.Type"], UNIT["Service.Restart"]), ("notify", "on-failure"), "the unit")
    service = start_service(f"{PRIVATE}/notify")
    service.kill()
    service.wait(DEADLINE)
    equal(mount_type(AT), "fuse.epochfs", "the mount of a daemon that was killed")
    stop_post("signal")
    equal(mount_type(AT), None, "what is mounted afterwards")
    service = start_service(f"@epochfs-test-{os.getpid()}")
    equal(len(os.listdir(f"{AT}/train/samples/npz")), 20, "samples")
    service.send_signal(signal.SIGTERM)
    equal(service.wait(DEADLINE), 0, "exit code after SIGTERM")
    equal(stop_post("success"), b"", "what is said after a good end")
    equal(mount_type(AT), None, "what is mounted at the end")


small()
os.rename(SOURCE, CONF["SOURCE"])
timed(check_unit)
timed(check_fstab)
timed(check_service)
