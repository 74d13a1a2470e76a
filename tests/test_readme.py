"""The README's example prints what the README says it prints."""

import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def without_rounding(text):
    """The residual is rounding, and differs from machine to machine: only that it is tiny is compared."""
    residual = float(re.search(r"residual (\S+)", text).group(1))
    assert abs(residual) < 1e-6
    return re.sub(r"residual \S+", "residual", text).strip()


def test_example_prints_what_stands_below_it():
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL).group(1)
    printed = re.search(r"```text\n(.*?)```", README, re.DOTALL).group(1)
    assert len([line for line in code.splitlines() if line.strip()]) <= 12
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert without_rounding(run.stdout) == without_rounding(printed)
