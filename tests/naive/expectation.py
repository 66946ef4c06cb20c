"""Discounted totals of basis costs, episode by episode and step by step."""


def totals(demos, matrix, world):
    """For each episode the total of each cost, and the discounted time that is left out.

    `matrix` is dense with one row per pair.
    """
    offsets = world.pairs.offsets
    collected, missing = [], []
    for j in range(len(demos)):
        states, actions = demos.episode(j)
        total = [0.0] * matrix.shape[1]
        for t in range(len(actions)):
            for i in range(matrix.shape[1]):
                total[i] += world.discount**t * matrix[offsets[states[t]] + actions[t], i]
        tail = world.discount ** len(actions) / (1 - world.discount)
        resting = matrix[offsets[states[-1]] : offsets[states[-1] + 1]].tolist()
        if demos.terminated[j] and all(row == resting[0] for row in resting):
            for i in range(matrix.shape[1]):
                total[i] += tail * resting[0][i]
            tail = 0.0
        collected.append(total)
        missing.append(tail)
    return collected, missing
