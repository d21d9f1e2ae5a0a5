#!/usr/bin/python3
"""mount-scripts/kubernetes against the schema of Kubernetes' API, as Debian's python3-kubernetes has it (API 1.22): each field is
known, has its type, and none that must be there is missing. Then what the schema does not say: words of enumerations, names,
labels that a selector selects, volumes and their mounts."""

import glob
import importlib.util
import os
import re

from lib import equal, skip

for module, package in (("yaml", "python3-yaml"), ("kubernetes", "python3-kubernetes")):
    if not importlib.util.find_spec(module):
        skip(f"{module} is missing (package {package})")
import kubernetes.client  # noqa: E402
import yaml  # noqa: E402

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../mount-scripts/kubernetes")
KINDS = {("apps/v1", "DaemonSet"): "V1DaemonSet", ("v1", "Pod"): "V1Pod"}
PLAIN = {"str": str, "int": int, "bool": bool, "float": (int, float), "object": object}
# From the API's reference.
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
            raise Wrong(f"{where}: want {kind}, found {value!r}")
        for key, one in enumerate(value) if isinstance(value, list) else value.items():
            check(one, many[1], f"{where}[{key}]")
    elif kind in PLAIN:
        if not isinstance(value, PLAIN[kind]) or (kind == "int" and isinstance(value, bool)):
            raise Wrong(f"{where}: want {kind}, found {value!r}")
    else:
        check_model(value, getattr(kubernetes.client, kind), where)


def check_model(value, model, where):
    if not isinstance(value, dict):
        raise Wrong(f"{where}: want {model.__name__}, found {value!r}")
    names = {shown: name for name, shown in model.attribute_map.items()}
    for field, one in value.items():
        if field not in names:
            raise Wrong(f"{where}.{field}: {model.__name__} has no such field")
        if field in WORDS and isinstance(one, str) and one not in WORDS[field]:
            raise Wrong(f"{where}.{field}: want one of {sorted(WORDS[field])}, found {one!r}")
        if field == "name" and not NAME.fullmatch(one):
            raise Wrong(f"{where}.name: want a name of DNS, found {one!r}")
        check(one, model.openapi_types[names[field]], f"{where}.{field}")
    try:
        model(**{names[field]: one for field, one in value.items()})
    except ValueError as e:
        raise Wrong(f"{where}: {e}") from e


def check_pod(spec, where):
    """Each volume is mounted, each mount has its volume, and what the propagation of a mount asks for is there."""
    defined = [volume["name"] for volume in spec.get("volumes", [])]
    used = [(c, mount) for c in spec["containers"] for mount in c.get("volumeMounts", [])]
    if {mount["name"] for _, mount in used} != set(defined) or len(set(defined)) != len(defined):
        raise Wrong(f"{where}: volumes {defined}, and mounts of {[mount['name'] for _, mount in used]}")
    for container, mount in used:
        privileged = container.get("securityContext", {}).get("privileged")
        if mount.get("mountPropagation") == "Bidirectional" and not privileged:
            raise Wrong(f"{where}: {container['name']}: Bidirectional is for privileged containers")


def check_document(document):
    key = document.get("apiVersion"), document.get("kind")
    if key not in KINDS:
        raise Wrong(f"want one of {sorted(KINDS)}, found {key}")
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
    container = "['spec']['template']['spec']['containers'][0]"
    for change, words in (
            (f"{container}['volumeMount'] = []", "has no such field"), (f"{container}['args'] = 'mount'", "want list[str]"),
            (f"{container}['readinessProbe']['periodSeconds'] = '10'", "want int"),
            (f"del {container}['name']", "`name`, must not be"), (f"{container}['name'] = 'An_Epoch'", "a name of DNS"),
            ("['spec']['selector']['matchLabels']['app'] = 'x'", "does not select"), ("del ['spec']['selector']", "`selector`"),
            (f"{container}['volumeMounts'][0]['mountPropagation'] = 'Both'", "want one of"),
            (f"{container}['securityContext']['privileged'] = False", "privileged containers"),
            ("['spec']['template']['spec']['volumes'].pop()", "volumes"), ("['apiVersion'] = 'apps/v1beta2'", "apps/v1beta2")):
        changed = yaml.safe_load(yaml.safe_dump(daemonset))
        exec(change.replace("['", "changed['", 1), {"changed": changed})
        try:
            check_document(changed)
        except Wrong as e:
            equal(words in str(e), True, f"{change}: {e}")
        else:
            raise AssertionError(f"{change}: not found")


found = list(check_manifests())
check_planted(found)
print(f"{len(found)} objects: {[d['kind'] for d in found]}, {kubernetes.__name__} {kubernetes.__version__}")
