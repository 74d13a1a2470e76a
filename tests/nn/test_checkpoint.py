"""A saved model comes back bit by bit, or not at all: damaged, forged and foreign files are refused."""

import errno
import hashlib
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import apexgnn.nn.checkpoint as checkpoint_module
from apexgnn.errors import CheckpointError
from apexgnn.nn import GIN, PolyGIN, load, read_checkpoint, save

MODELS = [
    lambda: PolyGIN(3, 2, hidden_channels=5),
    lambda: PolyGIN(4, 3, hidden_channels=5, task="node", theta="channel", eps=0.3, train_eps=True),
    lambda: PolyGIN(2, 1, hidden_channels=3, num_layers=0, readout="sum", dropout=0.0),
    lambda: GIN(3, 2, hidden_channels=5, eps=0.25),
]


@pytest.fixture
def saved(tmp_path):
    torch.manual_seed(0)
    folder = tmp_path / "model"
    save(PolyGIN(3, 2, hidden_channels=4), folder, metadata={"classes": ["no", "yes"]})
    return folder


def weights_of(folder: Path) -> Path:
    (path,) = folder.glob("*.safetensors")
    return path


def edit(folder: Path, **changes) -> None:
    """Change top-level fields of config.json as a forger would, with a true checksum; `...` removes one."""
    path = folder / "config.json"
    fields = {k: v for k, v in (json.loads(path.read_text()) | changes).items() if v is not ...}
    fields.pop("checksum")
    canonical = json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
    path.write_text(json.dumps(fields | {"checksum": hashlib.sha256(canonical).hexdigest()}))


def replace_weights(folder: Path, data: bytes) -> None:
    """Other weights under a true checksum: what an attacker, unlike a bad disk, would write."""
    weights_of(folder).unlink()
    digest = hashlib.sha256(data).hexdigest()
    (folder / f"model-{digest[:12]}.safetensors").write_bytes(data)
    edit(folder, weights={"file": f"model-{digest[:12]}.safetensors", "sha256": digest})


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("make", MODELS)
def test_round_trip_is_bit_identical(make, dtype, tmp_path):
    torch.manual_seed(1)
    model = make().to(dtype)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    assert model.training
    before = {k: v.clone() for k, v in model.state_dict().items()}
    save(model, tmp_path / "new" / "folder")
    random_state = torch.random.get_rng_state()
    again = load(tmp_path / "new" / "folder")

    assert type(again) is type(model)
    assert again.config == model.config
    assert model.training
    assert not any(module.training for module in again.modules())
    assert torch.equal(random_state, torch.random.get_rng_state())
    for key, value in again.state_dict().items():
        assert value.dtype is dtype
        assert torch.equal(value, before[key])
    assert [p.requires_grad for p in again.parameters()] == [True] * len(list(model.parameters()))
    x = torch.randn(4, model.config["in_channels"], dtype=dtype)
    edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
    assert torch.equal(again(x, edges), model.eval()(x, edges))
    assert sorted(p.suffix for p in (tmp_path / "new" / "folder").iterdir()) == [".json", ".safetensors"]


def test_metadata_and_checksum_are_on_record(saved):
    about = read_checkpoint(saved)
    assert about.metadata == {"classes": ["no", "yes"]}
    assert about.sha256 == hashlib.sha256(weights_of(saved).read_bytes()).hexdigest()
    assert about.model_class == "PolyGIN"
    assert about.config["hidden_channels"] == 4


def test_saving_again_replaces_the_model_and_leaves_other_files(saved):
    (saved / "notes.txt").write_text("mine")
    model = PolyGIN(3, 2, hidden_channels=6)
    save(model, saved)
    assert load(saved).config["hidden_channels"] == 6
    assert sorted(p.name for p in saved.iterdir() if p.suffix != ".safetensors") == [
        "config.json",
        "notes.txt",
    ]
    assert weights_of(saved).exists()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_failure_while_saving_leaves_the_earlier_model(saved, monkeypatch, code):
    before = load(saved).state_dict()

    def failing(path, content):
        if Path(path).name == "config.json":
            raise OSError(code, os.strerror(code))
        original(path, content)

    original = checkpoint_module.write_atomically
    monkeypatch.setattr(checkpoint_module, "write_atomically", failing)
    with pytest.raises(CheckpointError, match=os.strerror(code)):
        save(PolyGIN(3, 2, hidden_channels=8), saved)
    assert all(torch.equal(v, before[k]) for k, v in load(saved).state_dict().items())


def test_a_process_killed_while_saving_leaves_a_whole_model(tmp_path):
    """kill -9 at the very moment that config.json would take its name."""
    program = """
import os, signal, sys, torch
from apexgnn.nn import PolyGIN, save
save(PolyGIN(3, 2, hidden_channels=4), sys.argv[1])
rename = os.replace
def dying(source, target):
    if str(target).endswith("config.json"):
        os.kill(os.getpid(), signal.SIGKILL)
    rename(source, target)
os.replace = dying
save(PolyGIN(3, 2, hidden_channels=9), sys.argv[1])
"""
    folder = tmp_path / "model"
    done = subprocess.run([sys.executable, "-c", program, str(folder)], check=False)
    assert done.returncode == -9
    assert load(folder).config["hidden_channels"] == 4


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(CheckpointError, match="taken"):
        save(PolyGIN(3, 2, hidden_channels=4), tmp_path / "taken")


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_every_damage_to_the_weights_is_noticed(data, tmp_path_factory):
    """A flipped bit, a cut and an extension, anywhere in the file."""
    folder = tmp_path_factory.mktemp("damaged")
    save(PolyGIN(2, 2, hidden_channels=3, num_layers=1), folder)
    path = weights_of(folder)
    raw = bytearray(path.read_bytes())
    kind = data.draw(st.sampled_from(["flip", "cut", "extend"]))
    if kind == "flip":
        raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    elif kind == "cut":
        del raw[data.draw(st.integers(0, len(raw) - 1)) :]
    else:
        raw += b"\0"
    path.write_bytes(raw)
    with pytest.raises(CheckpointError, match="SHA-256"):
        load(folder)


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_a_damaged_config_never_gives_another_model(data, tmp_path_factory):
    """One byte of config.json changed: refused, or (a byte of white space) the very same model."""
    folder = tmp_path_factory.mktemp("damaged")
    model = GIN(2, 2, hidden_channels=3, num_layers=1, eps=0.25)
    before = save(model, folder, metadata={"note": "words"})
    path = folder / "config.json"
    raw = bytearray(path.read_bytes())
    position = data.draw(st.integers(0, len(raw) - 1))
    raw[position] = data.draw(st.integers(0, 255))
    path.write_bytes(raw)
    try:
        again = load(folder)
    except CheckpointError:
        return
    assert read_checkpoint(folder) == before
    assert all(torch.equal(value, model.state_dict()[key]) for key, value in again.state_dict().items())


@pytest.mark.parametrize("name", ["model.pt", "model.pth", "model.pkl", "pytorch_model.bin", "last.ckpt"])
def test_pickles_are_never_read(name, tmp_path):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "exploded"),))

    (tmp_path / name).write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(CheckpointError, match="pickled models are never read"):
        load(tmp_path / name)
    assert not (tmp_path / "exploded").exists()


def test_a_pickle_in_the_place_of_the_weights_is_not_unpickled(saved, tmp_path):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "exploded"),))

    replace_weights(saved, pickle.dumps(Bomb()))
    with pytest.raises(CheckpointError, match="a safetensors file"):
        load(saved)
    assert not (tmp_path / "exploded").exists()


def test_missing_things_are_named(saved, tmp_path):
    with pytest.raises(CheckpointError, match="no such folder"):
        load(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match="got a file"):
        load(saved / "config.json")
    weights_of(saved).unlink()
    with pytest.raises(CheckpointError, match="the weights' file"):
        load(saved)
    (saved / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"config\.json: got No such file"):
        load(saved)


CONFIG = {"in_channels": 3, "out_channels": 2, "hidden_channels": 4}
WEIGHTS = {"file": "model-0123456789ab.safetensors", "sha256": "0" * 64}


@pytest.mark.parametrize(
    "changes, where",
    [
        ({"format": "onnx"}, "format"),
        ({"format": ...}, "format"),
        ({"version": 2}, "version"),
        ({"version": 0}, "version"),
        ({"version": True}, "version"),
        ({"version": "1"}, "version"),
        ({"class": "Transformer"}, "class"),
        ({"class": ["PolyGIN"]}, "class"),
        ({"class": "__import__"}, "class"),
        ({"class": ...}, "config.json"),
        ({"surprise": 1}, "config.json"),
        ({"config": []}, "config"),
        ({"config": CONFIG | {"surprise": 1}}, "config"),
        ({"config": {"in_channels": 3}}, "config"),
        ({"config": CONFIG | {"hidden_channels": 5}}, "convs.0.lin1.weight"),
        ({"config": CONFIG | {"in_channels": 7}}, "lin1.weight"),
        ({"config": CONFIG | {"num_layers": 2}}, "unknown convs.2"),
        ({"config": CONFIG | {"num_layers": 4}}, "no convs.3"),
        ({"config": CONFIG | {"num_layers": 10**9}}, "config.num_layers"),
        ({"config": CONFIG | {"hidden_channels": 2**31}}, "config"),
        ({"config": CONFIG | {"hidden_channels": 2**80}}, "config.hidden_channels"),
        ({"config": CONFIG | {"hidden_channels": -4}}, "config.hidden_channels"),
        ({"config": CONFIG | {"hidden_channels": 4.0}}, "config.hidden_channels"),
        ({"config": CONFIG | {"hidden_channels": True}}, "config.hidden_channels"),
        ({"config": CONFIG | {"dropout": 2}}, "config"),
        ({"config": CONFIG | {"dropout": None}}, "config.dropout"),
        ({"config": CONFIG | {"eps": 10**400}}, "config.eps"),
        ({"config": CONFIG | {"train_eps": 1}}, "config.train_eps"),
        ({"config": CONFIG | {"task": "edge"}}, "config.task"),
        ({"config": CONFIG | {"readout": 3}}, "config.readout"),
        ({"config": CONFIG | {"theta": "channel"}}, "theta"),
        ({"weights": "model.safetensors"}, "weights"),
        ({"weights": WEIGHTS | {"file": "../../etc/passwd"}}, "weights.file"),
        ({"weights": WEIGHTS | {"file": "/etc/passwd"}}, "weights.file"),
        ({"weights": WEIGHTS | {"file": "..\\model-0123456789ab.safetensors"}}, "weights.file"),
        ({"weights": WEIGHTS | {"file": "sub/model-0123456789ab.safetensors"}}, "weights.file"),
        ({"weights": WEIGHTS | {"file": "model-0123456789ab.safetensors\n"}}, "weights.file"),
        ({"weights": WEIGHTS | {"file": None}}, "weights.file"),
        ({"weights": WEIGHTS | {"sha256": "0"}}, "weights.sha256"),
        ({"weights": WEIGHTS | {"size": 3}}, "weights"),
        ({"metadata": []}, "metadata"),
    ],
)
def test_a_forged_config_is_refused_by_field(saved, changes, where):
    edit(saved, **changes)
    with pytest.raises(CheckpointError) as caught:
        load(saved)
    assert where in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe", b"[]", b"null", b"{", b"[" * 100_000, b'{"version": NaN}', b"9" * 10_000],
    ids=["empty", "not-utf8", "list", "null", "cut", "deep", "nan", "huge-number"],
)
def test_a_config_that_is_not_an_object_is_refused(saved, content):
    (saved / "config.json").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"config\.json"):
        load(saved)


def test_an_earlier_config_without_a_later_option_takes_its_default(saved):
    config = json.loads((saved / "config.json").read_text())["config"]
    del config["readout"]
    edit(saved, config=config)
    assert load(saved).config["readout"] == "mean"


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda s: {k: v.half() for k, v in s.items()}, "all float32 or all float64"),
        (lambda s: s | {"head.3.bias": s["head.3.bias"].double()}, "head.3.bias"),
        (lambda s: s | {"head.3.bias": torch.tensor([1, 2])}, "head.3.bias: got torch.int64"),
        (lambda s: s | {"head.3.bias": torch.tensor([1.0, torch.nan])}, "head.3.bias: got NaN"),
        (lambda s: s | {"head.3.bias": torch.tensor([1.0, torch.inf])}, "head.3.bias: got NaN or infinite"),
        (lambda s: s | {"head.3.bias": torch.zeros(2, 1)}, r"head.3.bias: got shape \(2, 1\)"),
        (lambda s: s | {"extra": torch.zeros(1)}, "unknown extra"),
        (lambda s: {k: v for k, v in s.items() if k != "head.3.bias"}, r"no head\.3\.bias"),
        (lambda s: {}, "got"),
    ],
)
def test_forged_weights_are_refused_by_tensor(saved, change, message):
    import safetensors.torch

    state = safetensors.torch.load_file(weights_of(saved))
    replace_weights(saved, safetensors.torch.save(change(state)))
    with pytest.raises(CheckpointError, match=message):
        load(saved)


def test_what_load_would_refuse_is_not_saved(tmp_path):
    class Mine(PolyGIN):
        pass

    broken = PolyGIN(3, 2, hidden_channels=4)
    with torch.no_grad():
        broken.head[3].bias[0] = torch.nan
    swapped = PolyGIN(3, 2, hidden_channels=4)
    swapped.head[3] = torch.nn.Linear(4, 7)
    for model, message in [
        (torch.nn.Linear(2, 2), "a PolyGIN or a GIN"),
        (Mine(3, 2, hidden_channels=4), "a PolyGIN or a GIN"),
        (broken, "head.3.bias: got NaN"),
        (swapped, r"head.3.weight: got shape \(7, 4\)"),
        (PolyGIN(3, 2, hidden_channels=4).half(), "all float32 or all float64"),
    ]:
        with pytest.raises(CheckpointError, match=message):
            save(model, tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    "metadata", [{1: "a"}, {"a": (1, 2)}, {"a": float("nan")}, {"a": torch.ones(1)}, {"a": {1, 2}}]
)
def test_metadata_that_json_would_change_is_refused(metadata, tmp_path):
    with pytest.raises(CheckpointError, match="metadata"):
        save(PolyGIN(3, 2, hidden_channels=4), tmp_path / "model", metadata=metadata)
