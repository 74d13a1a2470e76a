"""Sentences whose words wear their shares: a coloured box behind each token, the number below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from apexgnn.figures.graph import number
from apexgnn.figures.palette import DARK, GREY, ink, shade
from apexgnn.figures.plots import FONT

WIDTH, LINE, MARGIN = 7.6, 0.52, 0.25  # inches: the page, a line of words, its edge
LETTER, GAP = 0.092, 0.07  # of a letter of the fixed-width type, between words


@dataclass(frozen=True, slots=True)
class Sentence:
    """Tokens, their shares, and a line above."""

    tokens: Sequence[str]
    values: Sequence[float]
    caption: str


def draw_sentences(sentences: Sequence[Sentence], *, title: str, subtitle: str = "") -> Figure:
    """All sentences below each other; each on its own scale, from −max|φ| to max|φ|.

    >>> figure = draw_sentences([Sentence(["not", "bad"], [-0.5, 1.0], "positive")], title="t")
    >>> "not" in [text.get_text() for text in figure.texts]
    True
    """
    broken = [_lines(s) for s in sentences]
    height = 0.75 + sum(0.36 + LINE * len(lines) for lines in broken)
    figure = Figure(figsize=(WIDTH, height), facecolor="white")
    figure.text(MARGIN / WIDTH, 1 - 0.27 / height, title, size=12, weight="bold", color=DARK, family=FONT)
    figure.text(MARGIN / WIDTH, 1 - 0.50 / height, subtitle, size=8.5, color=GREY, family=FONT)
    y = height - 0.82
    for sentence, lines in zip(sentences, broken, strict=True):
        limit = max(map(abs, sentence.values), default=0.0) or 1.0
        text = f"{sentence.caption}; scale ±{limit:.2g}"
        figure.text(MARGIN / WIDTH, y / height, text, size=9, color=DARK, family=FONT)
        y -= 0.26
        for line in lines:
            x = MARGIN
            for place in line:
                x = _word(figure, sentence, place, x=x, y=y, limit=limit, height=height)
            y -= LINE
        y -= 0.10
    return figure


def _wide(token: str) -> float:
    return LETTER * max(len(token), 2) + 0.08


def _lines(sentence: Sentence) -> list[list[int]]:
    """Which tokens stand on which line."""
    lines: list[list[int]] = [[]]
    x = MARGIN
    for place, token in enumerate(sentence.tokens):
        if x + _wide(token) > WIDTH - MARGIN and lines[-1]:
            lines.append([])
            x = MARGIN
        lines[-1].append(place)
        x += _wide(token) + GAP
    return lines


def _word(
    figure: Figure, sentence: Sentence, place: int, *, x: float, y: float, limit: float, height: float
) -> float:
    """Draw one token with its left edge at x; return where the next one begins."""
    token, value = sentence.tokens[place], float(sentence.values[place])
    wide, fill = _wide(token), shade(value, limit=limit)
    box = FancyBboxPatch(
        (x / WIDTH, (y - 0.06) / height), wide / WIDTH, 0.22 / height,
        boxstyle="square,pad=0", facecolor=fill, edgecolor="none", transform=figure.transFigure,
    )  # fmt: skip
    figure.add_artist(box)
    middle = (x + wide / 2) / WIDTH
    figure.text(
        middle, y / height, token, size=10, color=ink(fill), family="DejaVu Sans Mono", ha="center", zorder=5
    )
    figure.text(
        middle, (y - 0.2) / height, number(value, limit=limit), size=6.5, color=GREY, family=FONT, ha="center"
    )
    return x + wide + GAP
