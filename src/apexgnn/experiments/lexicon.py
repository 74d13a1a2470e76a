"""A small list of words that are positive or negative in a film review by themselves, written for this experiment.

It is not derived from the data set or from any published lexicon. Words whose polarity depends on what follows ("not",
"too", "like", "funny") are left out, and so are names of genres.
"""

from __future__ import annotations

_POSITIVE = """
    amazing appealing beautiful beautifully best brilliant brilliantly captivating charm charming clever compelling
    delight delightful delightfully elegant engaging enjoyable enjoyed entertaining enthralling excellent exhilarating
    extraordinary fantastic fascinating fine finest fresh genuine good gorgeous graceful great gripping heartfelt
    honest hilarious imaginative impressive inspired inspiring intelligent joy joyous likable lively love loved lovely
    lyrical magical magnificent marvelous masterful masterpiece memorable moving nice original outstanding passionate
    perfect perfectly pleasant pleasure poignant powerful refreshing remarkable rewarding rich satisfying sensitive
    sincere smart solid splendid stunning stylish sublime succeeds superb superbly sweet tender terrific thoughtful
    touching triumph uplifting vivid warm warmth well wise witty wonderful wonderfully worthwhile
"""
_NEGATIVE = """
    amateurish annoying appalling awful awkward bad badly banal bland bogus boring bore clichéd cliched clumsy
    confusing contrived crass crude depressing disappointing disappointment disaster dreadful dreary dull embarrassing
    empty excruciating fail failed fails failure feeble flat flawed flimsy forced forgettable formulaic frustrating
    generic gloomy hackneyed hollow horrible idiotic inane incoherent inept insipid irritating lacks lame lazy lifeless
    listless ludicrous mediocre mess messy mindless miserable monotonous muddled numbing obnoxious offensive painful
    painfully pathetic plodding pointless poor poorly predictable preposterous pretentious repetitive ridiculous rotten
    shallow sloppy slow sluggish stale stupid tedious terrible tired tiresome ugly unbearable uneven unfunny uninspired
    unoriginal unpleasant waste wasted weak worse worst worthless wretched wrong
"""
POSITIVE, NEGATIVE = frozenset(_POSITIVE.split()), frozenset(_NEGATIVE.split())


def polarity(token: str) -> int:
    """1 for a positive word, −1 for a negative one, 0 for any other.

    >>> polarity("Charming"), polarity("dull"), polarity("the")
    (1, -1, 0)
    """
    word = token.lower()
    return (word in POSITIVE) - (word in NEGATIVE)
