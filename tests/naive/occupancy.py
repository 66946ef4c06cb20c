"""The occupancy measure as its power series: sum_t discount^t initial' M (P M)^t, term by term."""

TAIL = 1e-13


def occupancy(world, policy):
    transition = world.transition.toarray().tolist()
    offsets = world.pairs.offsets.tolist()
    probabilities = policy.per_pair.tolist()
    law = world.initial.tolist()
    measure = [0.0] * world.num_pairs
    weight = 1.0
    while weight / (1 - world.discount) >= TAIL:
        following = [0.0] * world.num_states
        for state in range(world.num_states):
            for pair in range(offsets[state], offsets[state + 1]):
                mass = law[state] * probabilities[pair]
                measure[pair] += weight * mass
                for target in range(world.num_states):
                    following[target] += mass * transition[pair][target]
        law = following
        weight *= world.discount
    return measure
