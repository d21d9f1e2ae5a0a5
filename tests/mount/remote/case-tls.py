#!/usr/bin/python3
# needs: openssl
"""HTTPS with a private CA: ca= names it; without it, and with another host's certificate, the mount
fails and says why. HTTP/2 if the server offers it."""

import os

from lib import PRIVATE, SOURCE, contains, content, equal, mounted, path, run, small
from servers import Nginx, check_counters, check_once, make_ca, make_certificate, remote

images, labels = small(300, side=60)
SIZES = {f"/{n}": os.path.getsize(f"{SOURCE}/{n}") for n in os.listdir(SOURCE)}
CA = make_ca(f"{PRIVATE}/ca")
OTHER_CA = make_ca(f"{PRIVATE}/other-ca")
GOOD = make_certificate(f"{PRIVATE}/ca", "good", "IP:127.0.0.1,DNS:localhost")
WRONG_HOST = make_certificate(f"{PRIVATE}/ca", "wrong-host", "DNS:elsewhere.example")


def refused(what, url, *options):
    """All commands end with 2 and name the trouble."""
    for command in ("info", "stage", "mount"):
        said = run(command, "-o", ",".join(["patience=10", *options]), url,
                   *([path()] if command == "mount" else []), code=2)
        equal("certificate" in said.lower(), True, f"{what}: {command}: names the certificate: "
              f"{said}")


for http2 in (False, True):
    with Nginx(SOURCE, certificate=GOOD, http2=http2) as server:
        for url in (server.url, server.url.replace("127.0.0.1", "localhost")):
            with mounted(f"{url}/", f"ca={CA},cache={PRIVATE}/{http2}.{len(url)}"):
                for i in range(0, 300, 7):
                    equal(content(path(f"train/samples/raw/{i:06d}.image.raw")),
                          images[i].tobytes(), f"image {i}")
                equal(content(path("train/batches/batch=all/raw/000000.image.raw")) ==
                      images.tobytes(), True, "all images")
                equal(content(path("train/batches/batch=all/raw/000000.label.raw")),
                      labels.tobytes(), "all labels")
                numbers = remote()
            requests = server.log()
            check_once(requests, SIZES, f"{url}, HTTP/2: {http2}")
            check_counters(requests, f"{url}, HTTP/2: {http2}", numbers)
            equal({r.protocol for r in requests}, {"HTTP/2.0" if http2 else "HTTP/1.1"}, "protocol")
            server.forget()
        if not http2:
            refused("a CA that nobody knows", f"{server.url}/")
            refused("another CA", f"{server.url}/", f"ca={OTHER_CA}")
            equal(server.log(), [], "data that was given to those who do not trust")
            contains(run("info", "-o", "ca=/no/such/file", f"{server.url}/", code=2),
                     "/no/such/file")
with Nginx(SOURCE, certificate=WRONG_HOST) as server:
    for url in (server.url, server.url.replace("127.0.0.1", "localhost")):
        refused("the certificate of another host", f"{url}/", f"ca={CA}")
    equal(server.log(), [], "data that was given to those who asked another host")

# A redirect to https is verified as well.
with Nginx(SOURCE, certificate=GOOD) as secure, Nginx(SOURCE, more=f"""
        location = /up {{ return 302 {secure.url}/train-images-idx3-ubyte; }}""") as plain:
    with mounted(f"{plain.url}/up", f"ca={CA},cache={PRIVATE}/redirected"):
        equal(content(path("up/samples/raw/000299.image.raw")), images[299].tobytes(),
              "redirected to https")
    refused("redirected to a server that is not trusted", f"{plain.url}/up")
