#!/usr/bin/python3
"""What the scripts of a node say: no part of a URL's query, even if it has spaces; and no error of their own where a
command of a user fails or does not end."""

import os
import subprocess

from lib import PRIVATE, equal

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../mount-scripts/slurm")


def bash(lines):
    done = subprocess.run(["bash", "-c", f'set -euo pipefail\n. {SCRIPTS}/node.sh\nsay() {{ echo "say: $*" >&2; }}\nnever_fail\n{lines}'],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True,
                          env={"PATH": os.environ["PATH"], "EPOCHFS_SLURM_SETTINGS": f"{PRIVATE}/none"})
    return done.stdout.decode()


for source, want in (("https://h/a b", "https://h/a b"), ("https://h/a?sig=one two", "https://h/a?..."),
                     ("https://h/a?sig=one;two", "https://h/a?..."), ("https://h/a?sig=one\ntwo three", "https://h/a?..."),
                     ("https://me:pass word@h/a?x=y z", "https://...@h/a?..."), ("/data/a b", "/data/a b")):
    equal(bash(f"without_query $'{source.encode('unicode_escape').decode()}'"), want + "\n", repr(source))

for command, code, answer in (("sleep 60", 124, ""), ("false", 1, ""), ("bash -c 'echo said; exit 3'", 3, "said"), ("echo fine", 0, "fine")):
    equal(bash(f'code=0; bounded 1 100 {command} || code=$?; echo "$code [$answer]"'), f"{code} [{answer}]\n", command)
