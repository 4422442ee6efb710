"""The definition of a replica's TensorFlow server, encoded without TensorFlow.

It is the protocol buffer `tensorflow.ServerDef` (tensorflow/core/protobuf/tensorflow_server.proto and
cluster.proto) with a few fields, in the encoding of protobuf.dev/programming-guides/encoding:

    ServerDef   cluster = 1, job_name = 2, task_index = 3, protocol = 5
    ClusterDef  repeated job = 1
    JobDef      name = 1, map<int32, string> tasks = 2 (an entry has key = 1 and value = 2)
"""

from __future__ import annotations

from paceline.training import clusters

_VARINT, _BYTES = 0, 2  # wire types


def encoded(cluster: clusters.ClusterTask) -> bytes:
    """Return the definition of this replica's server, serialised."""
    addresses = {role: list(hosts) for role, hosts in cluster.addresses.items() if role != "evaluator"}
    if cluster.role == "ps":
        # A parameter server fetches what a worker pushes from that worker, and cannot learn an address later.
        # An absent worker costs nothing: a channel is opened on first use (TensorFlow's `GrpcChannelCache`).
        addresses["worker"] = [*addresses.get("worker", []), *cluster.spare_workers]
    jobs = b"".join(_bytes(1, _job(role, hosts)) for role, hosts in sorted(addresses.items()))
    return (
        _bytes(1, jobs) + _bytes(2, cluster.role.encode()) + _integer(3, cluster.index) + _bytes(5, b"grpc")
    )


def _job(role: str, hosts: list[str]) -> bytes:
    tasks = [_integer(1, i) + _bytes(2, host.encode()) for i, host in enumerate(hosts)]
    return _bytes(1, role.encode()) + b"".join(_bytes(2, task) for task in tasks)


def _integer(field: int, value: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | _BYTES) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    """Return a number as seven bits a byte, the lowest first; all but the last byte have the top bit set."""
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)
