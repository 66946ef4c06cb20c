"""Trajectories of a policy, one uniform number at a time."""


def walk(world, policy, trajectories, horizon, rng):
    """(states, actions) of each episode, from the uniforms that the compiled kernel uses."""
    transition = world.transition.toarray()
    starts = rng.choice(world.num_states, size=trajectories, p=world.initial)
    episodes = []
    for start in starts.tolist():
        uniforms = [(rng.random(), rng.random()) for _ in range(horizon)]
        states, actions = [start], []
        for for_action, for_state in uniforms:
            first, behind = world.pairs.offsets[states[-1] : states[-1] + 2]
            action = _draw(policy.per_pair[first:behind].tolist(), for_action)
            actions.append(action)
            states.append(_draw(transition[first + action].tolist(), for_state))
            if world.absorbing[states[-1]]:
                break
        episodes.append((states, actions))
    return episodes


def _draw(probabilities, uniform):
    """The first outcome at which the running sum exceeds `uniform`."""
    total = 0.0
    for outcome, probability in enumerate(probabilities):
        total += probability
        if uniform < total:
            return outcome
    return max(outcome for outcome, probability in enumerate(probabilities) if probability > 0)
