"""Optimal values by value iteration, one state and one action at a time."""

PRECISION = 1e-12


def optimal_values(world, cost):
    """Values within PRECISION of the optimal ones, for a cost per pair."""
    transition = world.transition.toarray().tolist()
    offsets = world.pairs.offsets.tolist()
    values = [0.0] * world.num_states
    while True:
        better = []
        for state in range(world.num_states):
            options = []
            for pair in range(offsets[state], offsets[state + 1]):
                future = 0.0
                for target in range(world.num_states):
                    future += transition[pair][target] * values[target]
                options.append(cost[pair] + world.discount * future)
            better.append(min(options))
        change = max(abs(new - old) for new, old in zip(better, values, strict=True))
        values = better
        if change * world.discount / (1 - world.discount) < PRECISION:
            return values
