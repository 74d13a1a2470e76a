"""One diverging scale for all pictures: blue opposes, white is zero, red supports.

ColorBrewer's RdBu, which people with any of the common colour deficiencies can read, with true white in the
middle. The scale is symmetric, so that equal strengths have equal depth whatever their sign, and it is never
stretched: a value v is shown at v/limit, clipped to [−1, 1], and the limit is printed beside the picture.
"""

from __future__ import annotations

from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgb

STOPS = ("#2166ac", "#4393c3", "#92c5de", "#d1e5f0", "#ffffff", "#fddbc7", "#f4a582", "#d6604d", "#b2182b")
DIVERGING = LinearSegmentedColormap.from_list("apexgnn-diverging", list(STOPS), N=513)
DARK, GREY, PALE = "#1a1a1a", "#5f6368", "#b8bcc2"


def shade(value: float, *, limit: float) -> str:
    """The colour of a value on a scale from −limit to limit.

    >>> shade(0.0, limit=2.0), shade(2.0, limit=2.0), shade(-7.0, limit=2.0)
    ('#ffffff', '#b2182b', '#2166ac')
    """
    share = 0.0 if limit <= 0 else max(-1.0, min(1.0, value / limit))
    return to_hex(DIVERGING((share + 1) / 2))


def ink(background: str) -> str:
    """Black or white, whichever contrasts more with this background (always by at least 4.5 to 1).

    >>> ink("#ffffff"), ink("#2166ac")
    ('#000000', '#ffffff')
    """
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(background)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#ffffff" if 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.05 else "#000000"
