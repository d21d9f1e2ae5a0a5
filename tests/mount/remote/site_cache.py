"""A site cache for the cases: nginx with the configuration of mount-scripts/site-cache.

    with site_cache(origin.url) as site:  site.at, site.stop(), site.start(), site.log()
"""

import contextlib
import os
import subprocess

from lib import DEADLINE, PRIVATE, equal
from servers import Nginx, free_port

MAKE_CONF = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                         "../../../mount-scripts/site-cache/make-conf")


def make_conf(*arguments, code=0):
    done = subprocess.run([MAKE_CONF, *arguments], stdin=subprocess.DEVNULL, timeout=DEADLINE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    equal(done.returncode, code, f"exit code of make-conf {arguments}: {done.stderr!r}")
    return (done.stdout if code == 0 else done.stderr).decode()


def start_site(origin, folder):
    """None: another process took the port."""
    port = free_port()
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/epochfs.conf", "w", encoding="utf-8") as f:
        conf = make_conf("-l", f"127.0.0.1:{port}", "-n", "127.0.0.1", "-d", f"{folder}/kept",
                         "-s", "1g", "-a", f"{folder}/requests.log", origin)
        # In addition, the log that Nginx.log() reads.
        ours = f"access_log {PRIVATE}/nginx{Nginx.count + 1}/access.log one;"
        equal(conf.count("    access_log "), 1, "logs of requests")
        f.write(conf.replace("    access_log ", f"    {ours}\n    access_log "))
    try:
        site = Nginx(folder, servers=f"include {folder}/epochfs.conf;")
    except AssertionError as e:
        if "Address already in use" not in str(e):
            raise
        return None
    site.at = f"http://127.0.0.1:{port}"
    return site


@contextlib.contextmanager
def site_cache(origin, folder=f"{PRIVATE}/site"):
    site = None
    while not site:
        site = start_site(origin, folder)
    try:
        yield site
    finally:
        site.stop()
