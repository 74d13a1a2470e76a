"""The README's examples print what the README says they print."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from apexgnn import zoo

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


def test_the_explained_molecule_prints_what_stands_below_it(tmp_path):
    section = README[README.index("## For chemists") :]
    program, *arguments = shlex.split(re.search(r"```sh\n(.*?)```", section, re.DOTALL).group(1))
    printed = re.search(r"```text\n(.*?)```", section, re.DOTALL).group(1)
    assert program == "apexgnn"
    if arguments[1] not in zoo.names():
        pytest.skip(
            f"no model {arguments[1]!r} on the shelf, which tests/zoo complains of: apexgnn reproduce zoo"
        )
    run = subprocess.run(
        [sys.executable, "-c", "from apexgnn.cli import main; main()", *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        cwd=tmp_path,
        env=os.environ | {"COLUMNS": "90", "NO_COLOR": "1"},
    )
    assert without_rounding(run.stdout.replace("−", "-")) == without_rounding(printed.replace("−", "-"))
    assert (tmp_path / "aspirin.svg").exists()
