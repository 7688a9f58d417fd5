"""The documentation in Spanish says what the English does: as many sections, the same code, figures and links."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.wire import ROOT

DOCS = ROOT / "docs"
SPANISH = DOCS / "es"
_BLOCK = re.compile(r"(?:^ *<!-- tried[^\n]*-->\n)?^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^(#+) ", re.MULTILINE)
_CODE = re.compile(r"(`+)(.+?)\1", re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]*)(?:#[^)\s]*)?\)")
_FIGURE = re.compile(r"[0-9](?:[0-9.,]*[0-9])?")


def english_pages() -> list[Path]:
    """Return the pages that have to be there in Spanish; decisions are written once, in English."""
    found = (path.relative_to(DOCS) for path in DOCS.rglob("*.md"))
    return sorted(path for path in found if path.parts[0] not in {"decisions", "es"})


@dataclass(frozen=True)
class Passage:
    """What a section's prose, or a row of its tables, has in whatever language it is written."""

    level: int
    code: Counter[str]
    figures: Counter[str]
    links: Counter[str]
    is_needed: bool


def target(link: str, page: Path) -> str:
    """Return what a link leads to, as the path of the English page."""
    if not link or "://" in link:
        return link
    path = (page.parent / link).resolve().relative_to(ROOT)
    return str(path).replace("docs/es", "docs").replace(".es.md", ".md")


def passage(level: int, text: str, page: Path) -> Passage:
    """Count what a passage has."""
    prose = _CODE.sub(" ", text)
    return Passage(
        level,
        Counter(" ".join(found[2].split()) for found in _CODE.finditer(text)),
        Counter(_FIGURE.findall(re.sub(r"\]\([^)]*\)|<[^>]*>", " ", prose))),
        Counter(target(found[1], page) for found in _LINK.finditer(prose)),
        text.rstrip(" |").endswith(("Required.", "Obligatorio.")),
    )


def passages(page: Path) -> list[Passage]:
    """Return the prose and the rows of each section of a page, without its code blocks."""
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    starts = [found.start() for found in _HEADING.finditer(text)]
    found = []
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        lines = text[start:end].splitlines()
        prose = "\n".join(line for line in lines if not line.startswith("|"))
        rows = [line for line in lines if line.startswith("|")]
        found += [passage(prose.index(" "), one, page) for one in (prose, *rows)]
    return found


def blocks(page: Path) -> list[str]:
    """Return the code blocks of a page, with what marks them as tried."""
    return [found[0] for found in _BLOCK.finditer(page.read_text(encoding="utf-8"))]


def test_every_page_is_there_in_spanish_and_no_other() -> None:
    assert sorted(path.relative_to(SPANISH) for path in SPANISH.rglob("*.md")) == english_pages()


# The blocks of the English guides are tried; these are the same.
@pytest.mark.parametrize("page", english_pages(), ids=str)
def test_page_in_spanish_has_the_code_of_the_english(page: Path) -> None:
    assert blocks(SPANISH / page) == blocks(DOCS / page)


@pytest.mark.parametrize("page", english_pages(), ids=str)
def test_page_in_spanish_has_the_sections_of_the_english(page: Path) -> None:
    assert passages(SPANISH / page) == passages(DOCS / page)


def test_picture_in_spanish_is_the_english_with_other_words() -> None:
    def drawn(picture: Path) -> str:
        text = re.sub(r"<!--.*?-->", "", picture.read_text(encoding="utf-8"), flags=re.DOTALL)
        return re.sub(r"(<(?:text|title|desc)[^>]*>)[^<]*", r"\1", text)

    assert drawn(SPANISH / "overview.svg") == drawn(DOCS / "overview.svg")


def test_readme_in_spanish_has_the_code_and_sections_of_the_english() -> None:
    english, spanish = ROOT / "README.md", ROOT / "README.es.md"
    assert blocks(spanish) == blocks(english)
    assert passages(spanish) == passages(english)
