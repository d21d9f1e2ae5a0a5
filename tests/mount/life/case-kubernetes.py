#!/usr/bin/python3
# needs: python3-yaml python3-kubernetes
"""mount-scripts/kubernetes against the schema of Kubernetes' API, as Debian's python3-kubernetes has it (API 1.22): each field is
known, has its type, and none that must be there is missing. Then what the schema does not say: words of enumerations, names,
labels that a selector selects, volumes and their mounts. Then the commands of the containers, with folders of this test for those
of the pod: a new node, its probe, a kill -9, another start, the end."""

import glob
import os
import re
import subprocess

from lib import EPOCHFS, PRIVATE, SOURCE, equal, mount_type, small, wait_mounted

import kubernetes.client  # noqa: E402
import yaml  # noqa: E402

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../mount-scripts/kubernetes")
KINDS = {("apps/v1", "DaemonSet"): "V1DaemonSet", ("v1", "Pod"): "V1Pod"}
PLAIN = {"str": str, "int": int, "bool": bool, "float": (int, float), "object": object}
# From the API's reference. Fields that are newer than the schema: sidecar containers are of API 1.28, and on from 1.29.
NEWER = {"V1Container": {"restartPolicy": "str"}}
WORDS = {"mountPropagation": {"None", "HostToContainer", "Bidirectional"}, "restartPolicy": {"Always", "OnFailure", "Never"},
         "type": {"", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"}}
NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class Wrong(Exception):
    pass


def check(value, kind, where):
    """Is the value of that kind? kind: as the client's models name it."""
    many = re.fullmatch(r"(?:list\[|dict\(str, )(.*)[\])]", kind)
    if many:
        if not isinstance(value, list if kind.startswith("list") else dict):
            raise Wrong(f"{where}: expected {kind}, got {value!r}")
        for key, one in enumerate(value) if isinstance(value, list) else value.items():
            check(one, many[1], f"{where}[{key}]")
    elif kind in PLAIN:
        if not isinstance(value, PLAIN[kind]) or (kind == "int" and isinstance(value, bool)):
            raise Wrong(f"{where}: expected {kind}, got {value!r}")
    else:
        check_model(value, getattr(kubernetes.client, kind), where)


def check_model(value, model, where):
    if not isinstance(value, dict):
        raise Wrong(f"{where}: expected {model.__name__}, got {value!r}")
    names = {shown: name for name, shown in model.attribute_map.items()}
    newer = {field: kind for field, kind in NEWER.get(model.__name__, {}).items() if field not in names}
    for field, one in value.items():
        if field not in names and field not in newer:
            raise Wrong(f"{where}.{field}: {model.__name__} has no such field")
        if field in WORDS and isinstance(one, str) and one not in WORDS[field]:
            raise Wrong(f"{where}.{field}: expected one of {sorted(WORDS[field])}, got {one!r}")
        if field == "name" and not NAME.fullmatch(one):
            raise Wrong(f"{where}.name: expected a name of DNS, got {one!r}")
        check(one, newer.get(field) or model.openapi_types[names[field]], f"{where}.{field}")
    try:
        model(**{names[field]: one for field, one in value.items() if field in names})
    except ValueError as e:
        raise Wrong(f"{where}: {e}") from e


def containers(spec):
    return spec.get("initContainers", []) + spec["containers"]


def check_pod(spec, where):
    """Each volume is mounted, each mount has its volume, what the propagation of a mount asks for exists, and a pod that is to end
    has no container that does not: one that mounts is a sidecar, with a probe that the others wait for."""
    defined = [volume["name"] for volume in spec.get("volumes", [])]
    used = [(c, mount) for c in containers(spec) for mount in c.get("volumeMounts", [])]
    for container in containers(spec):
        serves = "mount" in container.get("args", [])
        first = container in spec.get("initContainers", [])
        if "restartPolicy" in container and (not first or container["restartPolicy"] != "Always"):
            raise Wrong(f"{where}: {container['name']}: restartPolicy of a container is Always, of an init container")
        if serves and spec.get("restartPolicy") == "Never" and not ("restartPolicy" in container and "startupProbe" in container):
            raise Wrong(f"{where}: {container['name']} does not end, so the pod does not")
    if {mount["name"] for _, mount in used} != set(defined) or len(set(defined)) != len(defined):
        raise Wrong(f"{where}: volumes {defined}, and mounts of {[mount['name'] for _, mount in used]}")
    for container, mount in used:
        privileged = container.get("securityContext", {}).get("privileged")
        if mount.get("mountPropagation") == "Bidirectional" and not privileged:
            raise Wrong(f"{where}: {container['name']}: Bidirectional is for privileged containers")


def check_document(document):
    key = document.get("apiVersion"), document.get("kind")
    if key not in KINDS:
        raise Wrong(f"expected one of {sorted(KINDS)}, got {key}")
    where = f"{document['kind']} {document['metadata'].get('name')}"
    check(document, KINDS[key], where)
    if document["kind"] == "Pod":
        return check_pod(document["spec"], where)
    wanted = document["spec"]["selector"]["matchLabels"].items()
    if not wanted <= document["spec"]["template"]["metadata"]["labels"].items():
        raise Wrong(f"{where}: the selector {dict(wanted)} does not select its pods")
    return check_pod(document["spec"]["template"]["spec"], where)


def check_manifests():
    files = sorted(glob.glob(f"{FOLDER}/*.yaml"))
    equal([os.path.basename(file) for file in files], ["daemonset.yaml", "sidecar.yaml"], "manifests")
    for file in files:
        with open(file, encoding="utf-8") as f:
            for document in yaml.safe_load_all(f):
                check_document(document)
                yield document


def check_planted(documents):
    """Each of these changes of a good manifest is found."""
    daemonset = next(d for d in documents if d["kind"] == "DaemonSet")
    sidecar = next(d for d in documents if d["metadata"]["name"] == "train-with-epochfs")
    serving = "d['spec']['initContainers'][0]"
    for change, words in (
            (f"del {serving}['restartPolicy']", "does not end"), (f"del {serving}['startupProbe']", "does not end"),
            (f"{serving}['restartPolicy'] = 1", "expected str"), (f"{serving}['restartPolicy'] = 'Never'", "of an init container"),
            ("d['spec']['containers'].append(d['spec'].pop('initContainers')[0])", "of an init container")):
        check_change(sidecar, change, words)
    container = "d['spec']['template']['spec']['containers'][0]"
    for change, words in (
            (f"{container}['volumeMount'] = []", "has no such field"), (f"{container}['args'] = 'mount'", "expected list[str]"),
            (f"{container}['readinessProbe']['periodSeconds'] = '10'", "expected int"),
            (f"del {container}['name']", "`name`, must not be"), (f"{container}['name'] = 'An_Epoch'", "a name of DNS"),
            ("d['spec']['selector']['matchLabels']['app'] = 'x'", "does not select"), ("del d['spec']['selector']", "`selector`"),
            (f"{container}['volumeMounts'][0]['mountPropagation'] = 'Both'", "expected one of"),
            (f"{container}['securityContext']['privileged'] = False", "privileged containers"),
            ("d['spec']['template']['spec']['volumes'].pop()", "volumes"), ("d['apiVersion'] = 'apps/v1beta2'", "apps/v1beta2")):
        check_change(daemonset, change, words)


def check_change(good, change, words):
    changed = yaml.safe_load(yaml.safe_dump(good))
    exec(change, {"d": changed})
    try:
        check_document(changed)
    except Wrong as e:
        equal(words in str(e), True, f"{change}: {e}")
    else:
        raise AssertionError(f"{change}: not found")


# ---- the containers that mount, on a node that has nothing yet ----

def here(words, node):
    """Words of a container, with this test's folders for its volumes, and a source on this machine."""
    places = {"s3://bucket/mnist": SOURCE, "/epochfs": f"{node}/epochfs", "/cache": f"{node}/cache"}
    return [re.sub("|".join(places), lambda m: places[m[0]], word) for word in words]


def check_commands(container, probe, node):
    for volume in ("epochfs", "cache"):
        os.makedirs(f"{node}/{volume}")
    command = here(container.get("command", ["epochfs"]) + container["args"], node)
    environment = os.environ | {"PATH": f"{os.path.dirname(EPOCHFS)}:{os.environ['PATH']}"}
    mountpoint = f"{node}/epochfs/mnist"
    for killed_before in (False, True):
        daemon = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        try:
            if killed_before:
                next(line for line in daemon.stderr if "removed a stale mount left by a dead daemon" in line)
            wait_mounted(daemon.pid, mountpoint)
            subprocess.run(here(container[probe]["exec"]["command"], node), env=environment, check=True, stdout=subprocess.DEVNULL)
        except BaseException:
            daemon.kill()
            daemon.wait()
            raise
        daemon.terminate() if killed_before else daemon.kill()
        code = daemon.wait()
    equal((code, mount_type(mountpoint)), (0, None), "the end by SIGTERM, as of a pod")


found = list(check_manifests())
check_planted(found)
small()
for document, probe in ((found[0]["spec"]["template"], "readinessProbe"), (found[2], "startupProbe")):
    for container in containers(document["spec"]):
        if "args" in container:
            check_commands(container, probe, f"{PRIVATE}/{document['spec'].get('restartPolicy', 'each')}")
print(f"{len(found)} objects: {[d['kind'] for d in found]}, {kubernetes.__name__} {kubernetes.__version__}")
