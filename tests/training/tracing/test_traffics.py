import numpy as np

from paceline import specs
from paceline.model.variables.variables import Variable
from paceline.training import declarations, features
from paceline.training.tracing import traffics

ONE, TWO = features.Identity("one", 100), features.Identity("two", 28)
FEATURES = features.FeatureSet((), (ONE, TWO), features.Label("l"))
VECTORS = declarations.Embedding("vectors", (ONE, TWO), 4, None, "deep")
TABLE = declarations.Table((ONE, TWO), {"vectors": VECTORS})
VARIABLES = (
    Variable(name="vectors", shape=(128, 4), sparse=True, slots=1),
    Variable(name="kernel", shape=(8, 2), slots=1),
)


def batches():
    random = np.random.default_rng(0)
    for _ in range(traffics.BATCHES):
        yield np.stack([random.integers(0, 10, 64), random.integers(0, 28, 64)], axis=1).astype(np.int32)


def test_the_traffic_of_a_table_is_that_of_the_rows_used():
    meter = traffics.TrafficCounter([TABLE], FEATURES, distinct=True)
    rows = []
    for ids in batches():
        assert not meter.is_complete
        meter.add(ids)
        rows.append(len(np.unique(ids[:, 0])) + len(np.unique(ids[:, 1])))
    assert meter.is_complete
    table, kernel = meter.measured(VARIABLES)
    assert table.step_bytes == np.mean(rows) * (2 * 16 + 4)
    assert kernel.step_bytes == 2 * 8 * 2 * 4
    assert abs(sum(table.row_shares) - 1) < 1e-4
    used = np.array(table.row_shares) > 0
    assert used[:5].all()  # ids 0 to 9 of the first feature: two to a range
    assert not used[5:50].any()
    assert used[50:].all()


def test_without_distinct_ids_every_occurrence_counts():
    meter = traffics.TrafficCounter([TABLE], FEATURES, distinct=False)
    for ids in batches():
        meter.add(ids)
    assert meter.measured(VARIABLES)[0].step_bytes == 128 * (2 * 16 + 4)


def test_padding_has_no_traffic():
    several = features.Several(features.Identity("several", 100), 3)
    table = declarations.Table((several, TWO), {"vectors": VECTORS})
    known = features.FeatureSet((), (ONE, TWO, several), features.Label("l"))
    meter = traffics.TrafficCounter([table], known, distinct=False)
    meter.add(np.array([[99, 0, 5, 5, -1], [99, 27, -1, -1, -1]], dtype=np.int32))
    (measured, _) = meter.measured(VARIABLES)
    assert measured.step_bytes == 4 * (2 * 16 + 4)
    shares = np.array(measured.row_shares)
    assert shares[[2, 50, 63]].tolist() == [0.5, 0.25, 0.25]  # two rows of 128 to a share


def test_what_is_written_is_what_a_plan_reads(tmp_path):
    meter = traffics.TrafficCounter([TABLE], FEATURES, distinct=True)
    for ids in batches():
        meter.add(ids)
    measured = meter.measured(VARIABLES)
    traffics.write(measured, str(tmp_path))
    assert specs.load_variables(tmp_path / "variables.json") == measured
    assert [path.name for path in tmp_path.iterdir()] == ["variables.json"]
