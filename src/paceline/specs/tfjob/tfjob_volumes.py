"""The volumes that the container of a TFJob's pod mounts, in the form of a job file."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

Fields = dict[str, Any]
_SOURCES = (
    ("hostPath", "path", "host_path"),
    ("persistentVolumeClaim", "claimName", "claim"),
    ("secret", "secretName", "secret"),
)


def taken(
    pod: Fields,
    container: Fields,
    own: Collection[str],
    at: tuple[str, str],
    note: Callable[[str, str], None],
) -> Fields:
    """Remove the mounted volumes and their mounts; return them by name. Volumes that are not mounted stay.

    Args:
        pod: the pod spec, which is modified.
        container: its container, which is modified.
        own: names of Paceline's own volumes, which do not belong to the job.
        at: the paths of the pod spec and the container.
        note: called with the path and a text for everything that a job file cannot express.
    """
    pod_at, container_at = at
    listed = pod.get("volumes") or ()
    places = {volume["name"]: (f"{pod_at}.volumes[{index}]", volume) for index, volume in enumerate(listed)}
    mounted_volumes: Fields = {}
    for name in places.keys() & set(own):
        places[name][1].clear()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        name, mount_at = mount["name"], f"{container_at}.volumeMounts[{index}]"
        volume_at, volume = places.get(name, (mount_at, {}))
        if name in own:
            mount.clear()
        elif name in mounted_volumes:
            note(mount_at, f"volume {name} is mounted a second time, at {mount.get('mountPath')}")
            mount.clear()
        elif source := _source(volume):
            mount.pop("name")
            path, read_only = mount.pop("mountPath"), bool(mount.pop("readOnly", None))
            mounted_volumes[name] = {"name": name, "mount_path": path, "read_only": read_only, **source}
        else:
            note(volume_at, f"volume {name} is of kind {', '.join(sorted(volume.keys() - {'name'}))}")
            note(mount_at, f"volume {name}, at {mount.get('mountPath')}")
            volume.clear()
            mount.clear()
    return mounted_volumes


def _source(volume: Fields) -> Fields:
    """Remove and return the source of a volume; empty if a job file cannot express it."""
    for key, field, name in _SOURCES:
        source = volume.get(key)
        if source and source.get(field):
            volume.pop("name")
            return {name: source.pop(field)}
    return {}
