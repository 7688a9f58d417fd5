"""The documentation in Spanish has the pages, headings and code blocks of the English."""

import re
from pathlib import Path

from tests.support.wire import ROOT

DOCS = ROOT / "docs"
SPANISH = DOCS / "es"
_BLOCK = re.compile(r"(?:^ *<!-- tried[^\n]*-->\n)?^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^(#+) ", re.MULTILINE)


def english_pages() -> list[Path]:
    """Return the pages to translate; decisions are in English only."""
    found = (path.relative_to(DOCS) for path in DOCS.rglob("*.md"))
    return sorted(path for path in found if path.parts[0] not in {"decisions", "es"})


def outline(page: Path) -> tuple[list[str], list[str]]:
    """Return the levels of a page's headings, and its code blocks with their marks."""
    text = page.read_text(encoding="utf-8")
    return _HEADING.findall(_BLOCK.sub("", text)), [found[0] for found in _BLOCK.finditer(text)]


def test_every_page_is_translated() -> None:
    assert sorted(path.relative_to(SPANISH) for path in SPANISH.rglob("*.md")) == english_pages()


def test_translations_have_the_same_headings_and_code() -> None:
    """The code of the English pages is run (test_docs.py, test_production.py, test_readme.py)."""
    pairs = {SPANISH / page: DOCS / page for page in english_pages()} | {ROOT / "README.es.md": ROOT / "README.md"}
    assert [str(spanish) for spanish, english in pairs.items() if outline(spanish) != outline(english)] == []
