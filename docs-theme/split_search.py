"""Splits the search index of the documentation by language: `split_search.py build/site`.

Spanish pages also look for the sitemap below es/.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

SPANISH = "es/"

site = Path(sys.argv[1])
index = json.loads((site / "search.json").read_text(encoding="utf-8"))
by_language: dict[str, list[dict[str, Any]]] = {"": [], SPANISH: []}
for item in index["items"]:
    folder = SPANISH if item["location"].startswith(SPANISH) else ""
    path = item["path"][1:] if folder else item["path"]  # without the name of the language
    by_language[folder].append({**item, "location": item["location"].removeprefix(folder), "path": path})
for folder, items in by_language.items():
    language = "es" if folder else "en"
    split = {**index, "config": {**index["config"], "lang": [language]}, "items": items}
    (site / folder / "search.json").write_text(json.dumps(split, ensure_ascii=False), encoding="utf-8")
shutil.copy(site / "sitemap.xml", site / SPANISH)
