from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localidades_api.catalogue.coordinates import (
    BOUNDS,
    Axis,
    DegreesOutOfRangeError,
    UnreadableDegreesError,
    is_in_mexico,
    read_degrees,
    read_point,
)

LATITUDE, LONGITUDE = 21 + 52 / 60 + 47.362 / 3600, -(102 + 17 / 60 + 45.768 / 3600)


@pytest.mark.parametrize(
    ("axis", "text"),
    [
        *(("longitud", text) for text in (
            "102°17'45.768\" W", '102°17´45.768"', "102° 17' 45,768'' O", "W 102:17:45.768", "-102 17 45.768",
            "102º17′45.768″w", "102Â°17'45.768\" W", "102d17m45.768s W", "102°17.7628'", "-102.29604667",
            "102,29604667 W", "102.29604667° O", "-1.0229604667e+02", "\N{MINUS SIGN}102.29604667",
            "\N{EN DASH}102.29604667", "102.29604667 Oeste", "102°17'45.768\" West", "oeste 102.29604667",
            "-102.29604667,",
        )),
        *(("latitud", text) for text in (
            "21°52'47.362\" N", '21°52´47.362"', "N21°52'47.362\"", "21.87982278", "21.87982278 Norte", "021 52 47.362",
        )),
    ],
)  # fmt: skip
def test_coordinates_are_read_in_every_notation(axis: Axis, text: str) -> None:
    assert read_degrees(text, axis) == pytest.approx(LATITUDE if axis == "latitud" else LONGITUDE, abs=1e-6)


@given(st.integers(0, 200), st.integers(0, 70), st.integers(0, 700), st.sampled_from(["", "N", "S"]))
def test_parts_are_read_as_their_sum(degrees: int, minutes: int, tenths: int, side: str) -> None:
    text, total = f"{degrees}°{minutes}'{tenths / 10}\"{side}", degrees + minutes / 60 + tenths / 36000
    if minutes >= 60 or tenths >= 600 or total > 90:
        with pytest.raises(DegreesOutOfRangeError):
            read_degrees(text, "latitud")
    else:
        assert read_degrees(text, "latitud") == pytest.approx(-total if side == "S" else total, abs=1e-9)


@pytest.mark.parametrize(("text", "axis"), [("1021745", "longitud"), ("0893714", "longitud"), ("215247", "latitud")])
def test_packed_digits_of_older_census_files_are_read(text: str, axis: Axis) -> None:
    degrees, minutes, seconds = int(text[:-4]), int(text[-4:-2]), int(text[-2:])
    east = -1 if axis == "longitud" else 1
    assert read_degrees(text, axis) == pytest.approx(east * (degrees + minutes / 60 + seconds / 3600))
    assert read_degrees(f"{text}.0", axis) == read_degrees(text, axis)


@pytest.mark.parametrize(
    ("text", "axis", "error"),
    [
        *((text, "latitud", DegreesOutOfRangeError) for text in ("91", "215299", "21°60'00\" N", "2421500")),
        *((text, "longitud", DegreesOutOfRangeError) for text in ("-180.5", "455236", "180°00'01\" W", "785412.5")),
        *(
            (text, "latitud", UnreadableDegreesError)
            for text in ("", "veinte", "1_0", "inf", "N", "21/11/20", "20.67, -103.3", "٢١", "21°52'47\" E")
        ),
        # A sign that contradicts the letter.
        *((text, "latitud", UnreadableDegreesError) for text in ("-20.67 N", "+20°40'12\" S")),
        *((text, "longitud", UnreadableDegreesError) for text in ("-103.35 E", "+103.35 W", "E -103.35", "+103.35 O")),
    ],
)
def test_other_text_is_refused(text: str, axis: Axis, error: type[Exception]) -> None:
    with pytest.raises(error):
        read_degrees(text, axis)


@pytest.mark.parametrize(
    ("latitud", "longitud", "point"),
    [
        ("20.67", "-103.35", (20.67, -103.35)),
        ("20.67", "103.35", (20.67, -103.35)),  # its minus is missing
        ("-103.35", "20.67", (20.67, -103.35)),  # swapped
        ("103.35", "20.67", (20.67, -103.35)),
        ("103°21'00\" W", "20°40'12\" N", (20.67, -103.35)),
        ("1032100", "204012", (20.67, -103.35)),
        ("20.67 N", "103.35 O", (20.67, -103.35)),
        *((pair, other, (20.67, -103.35)) for pair in (
            "20.67, -103.35", "20.67 -103.35 1566.0 4.5", "-103.35 20.67", "(20,67; -103,35)",
            "20°40'12\" N 103°21'00\" W", "20.67, 103.35", "20,67, \N{MINUS SIGN}103,35",
        ) for other in ("", pair)),
        ("0", "0", (0, 0)),
        ("-20.67", "103.35", (-20.67, 103.35)),  # in Australia, perhaps
        ("51.5", "-0.1", (51.5, -0.1)),
        ("20.67", "20.67", (20.67, 20.67)),
    ],
)  # fmt: skip
def test_point_is_understood_where_it_is_then_in_mexico(
    latitud: str, longitud: str, point: tuple[float, float]
) -> None:
    assert read_point(latitud, longitud) == pytest.approx(point)
    assert is_in_mexico(*point) == (point == (20.67, -103.35))


@pytest.mark.parametrize(
    ("latitud", "longitud"),
    [
        ("2285000", "671000"), ("671000.5", "2285000"), ("99.9", "99.9"), ("103.35", "-20 E"), ("51.5, -0.1", ""),
        ("20.67 -103.35 1566.0 4.5 7", ""),
    ],
)  # fmt: skip
def test_point_in_other_units_is_refused(latitud: str, longitud: str) -> None:
    with pytest.raises((UnreadableDegreesError, DegreesOutOfRangeError)):
        read_point(latitud, longitud)


@given(st.text(max_size=20) | st.from_regex(r"[NSEWO]?[+-]?[0-9]{1,3}[^0-9]{0,3}[0-9]{0,2}[^0-9]?[0-9.]{0,5}[NSEWO]?"),
       st.sampled_from(sorted(BOUNDS)))  # fmt: skip
def test_arbitrary_text_is_read_or_refused(text: str, axis: Axis) -> None:
    with suppress(UnreadableDegreesError, DegreesOutOfRangeError):
        assert abs(read_degrees(text, axis)) <= BOUNDS[axis]
