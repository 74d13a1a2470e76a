"""Pictures of attributions: signs have the right colours, zero is white, files are whole and reproducible."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_rgb
from matplotlib.patches import Circle

from apexgnn.errors import InputError
from apexgnn.figures import draw_graph, ink, save_figure, shade, stress_layout
from apexgnn.figures.layout import distances, upright

HOUSE = torch.tensor([[0, 1, 2, 3, 4, 4], [1, 2, 3, 0, 0, 1]])


@given(st.floats(-10, 10), st.floats(0.1, 10))
def test_red_supports_blue_opposes_white_is_zero(value, limit):
    red, _, blue = to_rgb(shade(value, limit=limit))
    assert (red > blue) == (value / limit > 0.002) or abs(value / limit) < 0.01
    assert (blue > red) == (value / limit < -0.002) or abs(value / limit) < 0.01
    assert shade(0.0, limit=limit) == "#ffffff"
    assert shade(0.0, limit=0.0) == "#ffffff"


def test_depth_grows_with_strength_on_both_sides():
    for sign in (-1, 1):
        lightness = [sum(to_rgb(shade(sign * share, limit=1))) for share in np.linspace(0, 1, 11)]
        assert all(np.diff(lightness) < 0)


@pytest.mark.parametrize("value", np.linspace(-1, 1, 21))
def test_numbers_are_readable_on_their_colour(value):
    """A contrast of at least 4.5, as WCAG asks of small text."""

    def luminance(colour):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
        return float(np.dot([0.2126, 0.7152, 0.0722], linear))

    fill = shade(value, limit=1)
    light, dark = sorted([luminance(fill), luminance(ink(fill))], reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 12), st.data())
def test_layouts_are_finite_and_nodes_do_not_coincide(nodes, data):
    edges = data.draw(st.lists(st.tuples(*[st.integers(0, nodes - 1)] * 2), max_size=20))
    array = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    places = stress_layout(array, nodes)
    assert places.shape == (nodes, 2)
    assert np.isfinite(places).all()
    apart = np.linalg.norm(places[:, None] - places[None], axis=2) + np.eye(nodes)
    assert apart.min() > 1e-3


def test_a_path_is_drawn_straight_with_edges_of_one():
    edges = np.array([[0, 1, 2], [1, 2, 3]])
    places = stress_layout(edges, 4)
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.testing.assert_allclose(apart, distances(edges, 4), atol=1e-2)


def test_upright_puts_the_tip_above_the_base_and_keeps_distances():
    places = stress_layout(HOUSE.numpy(), 5)
    turned = upright(places, tip=4, base=[0, 1, 2, 3, 4])
    assert turned[4, 1] == turned[:, 1].max()
    np.testing.assert_allclose(turned[4, 0], turned.mean(axis=0)[0], atol=1e-12)
    np.testing.assert_allclose(
        np.linalg.norm(turned[:, None] - turned[None], axis=2),
        np.linalg.norm(places[:, None] - places[None], axis=2),
    )


def fills(axes):
    """The colour in each node, by node."""
    discs = [p for p in axes.patches if isinstance(p, Circle) and p.get_zorder() == 3]
    return [tuple(disc.get_facecolor()[:3]) for disc in discs]


def test_every_node_wears_its_share():
    values = torch.tensor([1.0, -1.0, 0.0, 0.5, -0.25])
    figure = draw_graph(HOUSE, values, target=4, motif=range(4), title="House", subtitle="Σ", captions=["c"])
    panel = figure.axes[0]
    assert fills(panel) == [to_rgb(shade(v, limit=1.0)) for v in values.tolist()]
    assert [text.get_text() for text in panel.texts] == ["1.00", "−1.00", "0.00", "0.50", "−0.25"]
    rings = [p for p in panel.patches if isinstance(p, Circle) and p.get_zorder() == 2]
    assert len(rings) == 1
    assert panel.get_title() == "c"
    assert [text.get_text() for text in figure.texts] == ["House", "Σ"]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["explained node", "true motif", "other node"]
    assert [label.get_text() for label in figure.axes[1].get_yticklabels()] == [
        "−1.00",
        "−0.50",
        "0.00",
        "0.50",
        "1.00",
    ]


def test_panels_share_one_scale_and_one_layout():
    figure = draw_graph(HOUSE, torch.tensor([[1.0, 0, 0, 0, 0], [-4.0, 0, 0, 0, 2.0]]))
    first, second, _ = figure.axes
    assert fills(first)[0] == to_rgb(shade(1, limit=4))
    assert fills(second)[0] == to_rgb(shade(-4, limit=4))
    assert [p.get_center() for p in first.patches] == [p.get_center() for p in second.patches]


@pytest.mark.parametrize("nodes", [1, 2, 60])
def test_small_and_large_graphs(nodes):
    edges = torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)])
    figure = draw_graph(edges, torch.linspace(-1, 1, nodes), target=0)
    figure.canvas.draw()
    assert len(fills(figure.axes[0])) == nodes


def test_all_zero_shares_and_self_loops():
    figure = draw_graph(torch.tensor([[0, 0], [0, 1]]), torch.zeros(2))
    assert fills(figure.axes[0]) == [(1, 1, 1), (1, 1, 1)]


@pytest.mark.parametrize("values", [torch.zeros(0), torch.zeros(1, 2, 3)])
def test_values_of_another_shape_are_refused(values):
    with pytest.raises(InputError, match="values"):
        draw_graph(torch.empty(2, 0, dtype=torch.long), values)


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_the_same_picture_is_the_same_file(suffix, tmp_path):
    paths = []
    for name in "ab":
        figure = draw_graph(HOUSE, torch.tensor([1.0, -1.0, 0.0, 0.5, -0.25]), target=4)
        paths.append(save_figure(figure, tmp_path / f"{name}{suffix}", dpi=50))
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"a{suffix}", f"b{suffix}"]
