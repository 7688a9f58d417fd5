"""The picture for social networks: the country by its places, one of them marked, as a PNG."""

import struct
import zlib
from collections.abc import Iterable, Sequence

from localidades_api.catalogue.mercator import Frame, runs

CARD_WIDTH, CARD_HEIGHT = 1200, 630  # as social networks crop it
_CELL = 2  # pixels along a side
_PAPER, _PLACE, _MARK = range(3)
_COLORS = bytes.fromhex("ffffff 8fa39e b42318")  # of these, in this order
_MARK_RADIUS, _RING_RADIUS = 13, 18  # of the dot, and of the paper around it


def draw_card(cells: Iterable[int], frame: Frame, place: tuple[float, float] | None) -> bytes:
    """Draw the cells of a frame that hold any place, given in order, and mark a longitude and latitude in degrees."""
    pixels = [bytearray(CARD_WIDTH) for _ in range(CARD_HEIGHT)]
    left, top = (CARD_WIDTH - frame.columns * _CELL) // 2, (CARD_HEIGHT - frame.rows * _CELL) // 2
    for run in runs(cells, frame.columns):
        start, end = left + run.column * _CELL, left + (run.column + run.length) * _CELL
        for row in range(top + run.row * _CELL, top + (run.row + 1) * _CELL):
            pixels[row][start:end] = bytes([_PLACE]) * (end - start)
    if place and (point := frame.locate(*place)):
        x, y = (round(start + _CELL * distance) for start, distance in zip((left, top), point, strict=True))
        _fill_circle(pixels, x, y, _RING_RADIUS, _PAPER)
        _fill_circle(pixels, x, y, _MARK_RADIUS, _MARK)
    return _encode(pixels)


def _fill_circle(pixels: Sequence[bytearray], x: int, y: int, radius: int, color: int) -> None:
    for down in range(-radius, radius + 1):
        half = round((radius**2 - down**2) ** 0.5)
        pixels[y + down][x - half : x + half + 1] = bytes([color]) * (2 * half + 1)


def _encode(pixels: Sequence[bytearray]) -> bytes:
    """Return rows of palette indexes as a PNG (https://www.w3.org/TR/png-3/)."""
    header = struct.pack(">IIBBBBB", CARD_WIDTH, CARD_HEIGHT, 8, 3, 0, 0, 0)  # eight bits each, by palette
    rows = zlib.compress(b"".join(b"\0" + row for row in pixels), 9)  # unfiltered
    chunks = ((b"IHDR", header), (b"PLTE", _COLORS), (b"IDAT", rows), (b"IEND", b""))
    written = (struct.pack(">I", len(data)) + kind + data + _checksum(kind + data) for kind, data in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(written)


def _checksum(data: bytes) -> bytes:
    return struct.pack(">I", zlib.crc32(data))
