"""The definition of a server is what TensorFlow itself would write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.training import clusters, server_definitions

HOSTS = st.lists(
    st.from_regex(r"[a-z0-9.-]{1,200}:[0-9]{1,5}", fullmatch=True), min_size=1, max_size=300
).map(tuple)


def reference(cluster):
    import tensorflow as tf

    roles = {role: list(hosts) for role, hosts in cluster.addresses.items() if role != "evaluator"}
    if cluster.role == "ps":
        roles["worker"] = [*roles.get("worker", []), *cluster.spare_workers]
    return tf.train.ServerDef(
        cluster=tf.train.ClusterSpec(roles).as_cluster_def(),
        job_name=cluster.role,
        task_index=cluster.index,
        protocol="grpc",
    )


@pytest.mark.slow
@given(
    addresses=st.fixed_dictionaries(
        {"ps": HOSTS, "worker": HOSTS}, optional={"chief": HOSTS, "evaluator": HOSTS}
    ),
    role=st.sampled_from(["ps", "worker"]),
    number=st.integers(0, 299),
    spare_workers=st.one_of(st.just(()), HOSTS),
)
def test_it_says_what_tensorflow_would(addresses, role, number, spare_workers):
    import tensorflow as tf

    index = number % len(addresses[role])
    cluster = clusters.ClusterTask(addresses, role, index, spare_workers=spare_workers)
    read = tf.train.ServerDef.FromString(server_definitions.encoded(cluster))
    assert read == reference(cluster)


def test_its_bytes():
    """Without TensorFlow, which has parsed these to what they are to say."""
    addresses = {"ps": ("a:1", "b:2"), "worker": ("c:3",), "evaluator": ("e:5",)}
    cluster = clusters.ClusterTask(addresses, "ps", 1, spare_workers=("d:4",))
    assert server_definitions.encoded(cluster) == (
        b"\n4"
        b"\n\x16\n\x02ps\x12\x07\x08\x00\x12\x03a:1\x12\x07\x08\x01\x12\x03b:2"
        b"\n\x1a\n\x06worker\x12\x07\x08\x00\x12\x03c:3\x12\x07\x08\x01\x12\x03d:4"
        b"\x12\x02ps\x18\x01*\x04grpc"
    )
