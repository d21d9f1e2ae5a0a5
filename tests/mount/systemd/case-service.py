#!/usr/bin/python3
# needs: systemd root cgroup2
"""docs/cluster.md, "As a service": the page's unit, lines and command. It has started when the mount answers, also at boot;
it has the rights that it needs and no others, and finds the secrets of root, although a service has no $HOME."""

import os

import pages
import systemd
from lib import contains, content, equal
from page_blocks import take

CONF = take("docs/cluster.md", "SOURCE=https://data.example.org")
ENABLE = take("docs/cluster.md", "systemctl enable --now")
READER = """
[Unit]
After=epochfs@mnist.service
[Service]
Type=oneshot
ExecStart=/bin/cp /mnt/mnist/t10k/samples/raw/000007.image.raw /data/read
[Install]
WantedBy=multi-user.target
"""
# As the page says of such options.
HIDDEN = "[Service]\nProtectSystem=yes\n"


CAPABILITIES = {"DAC_OVERRIDE": 1, "DAC_READ_SEARCH": 2, "FOWNER": 3, "SYS_ADMIN": 21, "SYS_RESOURCE": 24, "LEASE": 28}


def rights(process):
    """name -> value, of lines of /proc/PID/status."""
    return dict(line.split(":\t") for line in process.splitlines() if line.startswith(("Cap", "NoNewPrivs", "Seccomp:")))


def check_rights(machine):
    ours = rights(machine.run("cat /proc/1/status"))
    its = rights(machine.run(f"cat /proc/{machine.show('epochfs@mnist', 'MainPID')}/status"))
    wanted = sum(1 << number for number in CAPABILITIES.values()) & int(ours["CapBnd"], 16)
    equal((int(its["CapBnd"], 16), its["NoNewPrivs"], its["Seccomp"]), (wanted, "1", "2"), "what the unit leaves to the daemon")
    equal(int(its["CapEff"], 16) & ~wanted, 0, "rights of the daemon beyond that")


def check_home(machine, endpoint):
    """A service has no $HOME, and finds what is in root's."""
    machine.write(f"{systemd.HOMES}/root/.aws/credentials", "[default]\naws_access_key_id = AKID\naws_secret_access_key = hush\n")
    said = machine.run('systemd-run --pipe --wait --quiet sh -c "echo home=\$HOME; '
                       f'epochfs info -o endpoint={endpoint} s3://bucket/mnist"')
    contains(said, "home=\n", "~/.aws/credentials")


world = pages.World()
world.fashion("/data/mnist", "t10k")
world.web({"mnist": "/data/mnist"})
picture = content("/data/mnist/t10k-images-idx3-ubyte")[16 + 7 * 784:16 + 8 * 784]
labels = content("/data/mnist/t10k-labels-idx1-ubyte")
s3 = world.s3({"mnist/t10k-labels-idx1-ubyte": labels})
os.makedirs("/mnt/mnist")
machine = systemd.Machine()
machine.service(CONF)
machine.write("/etc/systemd/system/reader.service", READER)

with machine.booted():
    # It returns when the mount answers; units with After= find the data.
    machine.run(ENABLE + "test -e /mnt/mnist/t10k/samples/raw/000007.image.raw\nsystemctl enable reader")
    equal(machine.mount_type("/mnt/mnist"), "fuse.epochfs", "what is mounted")
    equal(machine.show("epochfs@mnist", "Type"), "notify", "it has told that it is ready")
    equal(machine.show("epochfs@mnist", "RestartUSec"), "2s", "the time until it is mounted again")
    check_rights(machine)
    check_home(machine, s3.endpoint)
    equal(os.listdir(machine.at("/var/cache/epochfs")) != [], True, "its cache is in the folder that the unit makes")

# Also at boot.
with machine.booted():
    equal(machine.show("epochfs@mnist", "ActiveState"), "active", "state after a boot")
    equal(machine.show("reader", "Result"), "success", machine.journal("reader"))
    equal(content("/data/read"), picture, "what a unit has read at boot")
    machine.run("systemctl stop epochfs@mnist")

    # An own view of the files.
    machine.service(CONF, drop_in=HIDDEN)
    machine.run("systemctl daemon-reload\nsystemctl start epochfs@mnist")
    equal(machine.mount_type("/mnt/mnist"), None, "what others see of a mount with ProtectSystem=")
    machine.run("systemctl stop epochfs@mnist")
