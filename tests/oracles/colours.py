"""Colour refinement (1-WL) with dictionaries, and pairs of graphs that it cannot tell apart."""


def refine(labels, edges, rounds):
    """The colours after 0, 1, …, rounds; equal integers are equal colours, across whatever graphs are given.

    Args:
        labels: one hashable per node.
        edges: pairs (u, v): v sees u.
        rounds: how often to refine.
    """
    incoming = [[] for _ in labels]
    for u, v in edges:
        incoming[v].append(u)
    names = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    history = [[names[label] for label in labels]]
    for _ in range(rounds):
        now = history[-1]
        signatures = [(now[v], tuple(sorted(now[u] for u in seen))) for v, seen in enumerate(incoming)]
        names = {signature: number for number, signature in enumerate(dict.fromkeys(signatures))}
        history.append([names[signature] for signature in signatures])
    return history


def both_ways(edges):
    return [pair for u, v in edges for pair in ((u, v), (v, u))]


def cycle(nodes, start=0):
    return [(start + i, start + (i + 1) % nodes) for i in range(nodes)]


TWO_TRIANGLES = both_ways(cycle(3) + cycle(3, 3))
HEXAGON = both_ways(cycle(6))
DECALIN = both_ways([*cycle(10), (0, 5)])
BICYCLOPENTYL = both_ways([*cycle(5), *cycle(5, 5), (0, 5)])
