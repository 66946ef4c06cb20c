"""Laws as frequencies of so many draws, for tests of estimated worlds."""

import numpy as np
from scipy import sparse


def frequencies(laws, counts):
    """The nearest frequencies of `counts` draws: whole parts, then the largest remainders.

    `laws` is a matrix with one count for all of its rows or one each; a row with count 0 stays.
    """
    dense = laws.toarray() if sparse.issparse(laws) else np.asarray(laws, dtype=float)
    numbers = np.broadcast_to(np.asarray(counts), len(dense))
    found = dense.copy()
    for row, number in enumerate(numbers):
        if number == 0:
            continue
        drawn = np.floor(dense[row] * number + 1e-9)
        missing = int(number - drawn.sum())
        left = np.where(dense[row] > 0, dense[row] * number - drawn, -1.0)
        drawn[np.argsort(-left, kind="stable")[:missing]] += 1
        found[row] = drawn / number
    return sparse.csr_array(found)


def start_frequencies(law, count):
    """The same for an initial law."""
    return frequencies([law], count).toarray()[0]
