"""The compiled loop of `sampling`."""

from journeyman.arrays import BoolArray, FloatArray, IntArray
from journeyman.compiled import kernel


@kernel
def draw(weights: FloatArray, start: int, stop: int, uniform: float) -> int:
    """Position in weights[start:stop], which sums to one; never one of weight zero."""
    last = start
    for position in range(start, stop):
        if weights[position] > 0.0:
            last = position
            uniform -= weights[position]
            if uniform < 0.0:
                break
    return last


@kernel
def advance(
    here: IntArray,
    visited: IntArray,
    pairs: IntArray,
    taken: IntArray,
    uniforms: FloatArray,
    probabilities: FloatArray,
    offsets: IntArray,
    data: FloatArray,
    indices: IntArray,
    indptr: IntArray,
    absorbing: BoolArray,
) -> None:
    """From `here` until absorption or the end of the chunk, at least one step."""
    for k in range(visited.shape[0]):
        state = here[k]
        step = 0
        while step < visited.shape[1] and not (absorbing[state] and step > 0):
            pair = draw(probabilities, offsets[state], offsets[state + 1], uniforms[k, step, 0])
            pairs[k, step] = pair
            state = indices[draw(data, indptr[pair], indptr[pair + 1], uniforms[k, step, 1])]
            visited[k, step] = state
            step += 1
        taken[k] = step
