from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from paceline.model import quantities as q

QUICK = settings(max_examples=examples(200))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("2", 2),
        ("+2", 2),
        ("500m", Decimal("0.5")),
        ("1.5", Decimal("1.5")),
        (".5", Decimal("0.5")),
        ("1.", 1),
        ("4Gi", 4 * 2**30),
        ("512Mi", 512 * 2**20),
        ("1k", 1000),
        ("2M", 2_000_000),
        ("1Ki", 1024),
        ("3e3", 3000),
        ("3E3", 3000),
        ("1E", 10**18),
        ("1Ei", 2**60),
        ("1e-3", Decimal("0.001")),
        ("5n", Decimal("5e-9")),
        (3, 3),
        (1.25, Decimal("1.25")),
        (" 7 ", 7),
        ("-1", -1),
        ("1.5Gi", Decimal("1.5") * 2**30),
        ("7u", Decimal("7e-6")),
    ],
)
def test_quantities(text: str | int | float, number: Decimal | int) -> None:
    assert q.parse_quantity(text) == number


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "x",
        "1 Gi",
        "1GiB",
        "1gi",
        "Gi",
        "1e",
        "1.2.3",
        "--1",
        "1e1000",
        "٣",
        "1_000",
        "0x10",
        "inf",
        "nan",
    ],
)
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        q.parse_quantity(text)


def test_cores_are_rounded_up_to_a_thousandth() -> None:
    assert q.parse_cpu_cores("0.0001") == 0.001
    assert q.parse_cpu_cores("1.0001") == 1.001
    assert q.parse_cpu_cores("4096") == 4096.0


def test_bytes_are_rounded_up_to_one() -> None:
    assert q.parse_bytes("1.5") == 2
    assert q.parse_bytes("1181116006400m") == 1_181_116_007, "as Kubernetes itself writes 1.1Gi"
    assert q.parse_bytes("1Ei") == 2**60


@pytest.mark.parametrize(
    "parse", [q.parse_quantity, q.parse_bytes, q.parse_cpu_cores, q.parse_bits_per_second]
)
def test_a_number_without_end_is_no_quantity(parse: Callable[[str], object]) -> None:
    with pytest.raises(ValueError, match="has 100 characters at most, not 1,000,000"):
        parse("9" * 1_000_000)


@pytest.mark.parametrize(
    ("text", "meant"), [("512m", "512Mi"), ("8u", "8Mi"), ("0.5", "0.5Gi"), (0.25, "0.25Gi")]
)
def test_less_than_a_byte_is_never_meant(text: str | float, meant: str) -> None:
    with pytest.raises(ValueError, match=f"is less than a byte: {meant} is meant"):
        q.parse_bytes(text)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (q.parse_cpu_cores, "0"),
        (q.parse_cpu_cores, "-1"),
        (q.parse_cpu_cores, "4097"),
        (q.parse_cpu_cores, "1e100"),
        (q.parse_cpu_cores, "9" * 99),
        (q.parse_bytes, "0"),
        (q.parse_bytes, "-1Gi"),
        (q.parse_bytes, "2Ei"),
        (q.parse_bytes, "1e999"),
        (q.parse_seconds, "-1"),
        (q.parse_seconds, "3651d"),
        (q.parse_seconds, "9" * 400),
        (q.parse_seconds, "1:30"),
        (q.parse_seconds, ""),
        (q.parse_seconds, "1h1d"),
        (q.parse_seconds, 10**400),
        (q.parse_seconds, float("nan")),
        (q.parse_bits_per_second, "7999"),
        (q.parse_bits_per_second, "11T"),
        (q.parse_bits_per_second, "fast"),
        (q.parse_bits_per_second, "1Gi"),
        (q.parse_bits_per_second, "-1G"),
    ],
)
def test_what_is_out_of_bounds(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(ValueError, match=r"must be|is not|more than|Exceeds"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 30),
        (30, 30),
        (1.5, 1.5),
        ("90s", 90),
        ("5m", 300),
        ("1h30m", 5400),
        ("7d", 604800),
        ("1d1h1m1.5s", 90061.5),
        ("0", 0),
        ("0.25", 0.25),
    ],
)
def test_durations(text: str | int | float, seconds: float) -> None:
    assert q.parse_seconds(text) == seconds


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("1G", 10**9),
        ("100Mbit", 10**8),
        ("25Gbps", 25 * 10**9),
        ("10MB/s", 8 * 10**7),
        ("10MBps", 8 * 10**7),
        (10_000, 10_000),
        ("1.5 Gbit", 15 * 10**8),
    ],
)
def test_bandwidths(text: str | int, bits: int) -> None:
    assert q.parse_bits_per_second(text) == bits


@QUICK
@given(st.integers(1, 2**60))
def test_bytes_come_back_from_their_quantity(amount: int) -> None:
    assert q.parse_bytes(q.quantity_bytes(amount)) == amount


@QUICK
@given(st.integers(1, 4_096_000))
def test_cores_come_back_from_their_quantity(millicores: int) -> None:
    assert q.parse_cpu_cores(q.quantity_cores(millicores / 1000)) == millicores / 1000


@QUICK
@given(st.text(max_size=20) | st.from_regex(r"[-+.0-9eEKMGTPi numk]{0,12}", fullmatch=True))
def test_any_text_is_a_value_or_a_value_error(text: str) -> None:
    for parse in (
        q.parse_quantity,
        q.parse_cpu_cores,
        q.parse_bytes,
        q.parse_seconds,
        q.parse_bits_per_second,
    ):
        try:
            result = parse(text)
        except ValueError:
            continue
        assert result is not None


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (None, "not measured"),
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (512 * 2**20, "512 MiB"),
        (1.5 * 2**30, "1.5 GiB"),
        (2**50, "1024 TiB"),
        (-2048, "-2.0 KiB"),
    ],
)
def test_bytes_for_people(amount: float | None, text: str) -> None:
    assert q.format_bytes(amount) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "not measured"),
        (4.2, "4.2s"),
        (9.97, "10s"),
        (59.6, "1m00s"),
        (192, "3m12s"),
        (18180, "5h03m"),
        (187200, "2d04h"),
        (0, "0.0s"),
    ],
)
def test_durations_for_people(seconds: float | None, text: str) -> None:
    assert q.format_seconds(seconds) == text


@QUICK
@given(st.floats(0, 10**9), st.floats(0, 10**9))
def test_seconds_for_people_never_have_sixty_of_anything(seconds: float, other: float) -> None:
    for value in (seconds, other):
        assert "60" not in [
            part for part in q.format_seconds(value).replace("s", "m").split("m") if part == "60"
        ]


@pytest.mark.parametrize(
    ("cores", "whole"), [(4, True), (4.0, True), (0.5, False), (1.001, False), (0, True)]
)
def test_whole_cores_are_whole_as_an_int_too(cores: float, whole: bool) -> None:
    assert q.is_whole(cores) is whole
