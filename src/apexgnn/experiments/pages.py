"""Pages that quote results: what stands between two marks is made from the files under `results/`.

    <!-- results: NAME -->
    … the table or sentence of this name, see `statements` …
    <!-- end of results -->

`apexgnn reproduce pages` puts the present numbers there; a test holds the pages to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from apexgnn.errors import InputError
from apexgnn.experiments.bench import Report
from apexgnn.experiments.statements import statements
from apexgnn.files import write_atomically

PAGES = (Path("docs/paper.md"), Path("README.md"))
BLOCK = re.compile(r"<!-- results: ([\w-]+) -->\n.*?<!-- end of results -->", re.DOTALL)


def filled(text: str, parts: Mapping[str, str]) -> str:
    """The text with every block made anew; a block whose results are missing stays as it is.

    >>> filled("a\\n<!-- results: x -->\\nold\\n<!-- end of results -->\\nb", {"x": "new"})
    'a\\n<!-- results: x -->\\n\\nnew\\n\\n<!-- end of results -->\\nb'
    """

    def block(found: re.Match[str]) -> str:
        if found[1] not in parts:
            return found[0]
        return f"<!-- results: {found[1]} -->\n\n{parts[found[1]]}\n\n<!-- end of results -->"

    return BLOCK.sub(block, text)


def reproduce(results: Path, pages: Sequence[Path] = PAGES, *, report: Report = print) -> None:
    """Put the numbers of the results into the pages."""
    parts = statements(results)
    if not parts:
        raise InputError(
            "results", got=f"nothing in {results}", expected="results", fix="apexgnn reproduce all"
        )
    for page in pages:
        text = page.read_text(encoding="utf-8")
        write_atomically(page, filled(text, parts))
        report(f"pages: {len(BLOCK.findall(text))} blocks of {page}")
