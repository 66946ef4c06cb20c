"""Soft-optimal values by value iteration, one state and one action at a time."""

import math

PRECISION = 1e-12


def soft_optimal_values(world, cost, temperature):
    """Values within PRECISION of the soft-optimal ones, for a cost per pair."""
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
            least = min(options)
            weights = [math.exp((least - option) / temperature) for option in options]
            better.append(least - temperature * math.log(math.fsum(weights)))
        change = max(abs(new - old) for new, old in zip(better, values, strict=True))
        values = better
        if change * world.discount / (1 - world.discount) < PRECISION:
            return values


def soft_law(world, cost, values, temperature):
    """exp((V(x) - Q(x, a))/temperature) for every pair."""
    law = []
    transition = world.transition.toarray().tolist()
    for pair, state in enumerate(world.pairs.states.tolist()):
        future = math.fsum(p * v for p, v in zip(transition[pair], values, strict=True))
        law.append(math.exp((values[state] - cost[pair] - world.discount * future) / temperature))
    return law
