"""What happens in a queue network, event by event, for one state given as a list of lengths."""


def events(plan, lengths, action):
    """(rate, lengths afterwards, jobs lost) of every event; the rates sum to one."""
    happened, rest = [], 1.0
    for queue, rate in enumerate(plan.arrivals):
        if rate > 0:
            after, lost = list(lengths), 0
            if after[queue] == plan.buffers[queue]:
                lost = 1
            else:
                after[queue] += 1
            happened.append((rate, after, lost))
            rest -= rate
    for queue in served(plan, action):
        rate, after, lost = plan.services[queue], list(lengths), 0
        if after[queue] > 0:
            after[queue] -= 1
            target = plan.routes[queue]
            if target is not None:
                if after[target] == plan.buffers[target]:
                    lost = 1
                else:
                    after[target] += 1
        happened.append((rate, after, lost))
        rest -= rate
    return [*happened, (rest, list(lengths), 0)]


def served(plan, action):
    """The queue of each server, counting through the choices with the last server fastest."""
    chosen = []
    for server in reversed(plan.servers):
        chosen.append(server[action % len(server)])
        action //= len(server)
    return chosen[::-1]


def law(plan, lengths, action):
    """Probability of each next lengths."""
    found = {}
    for rate, after, _ in events(plan, lengths, action):
        found[tuple(after)] = found.get(tuple(after), 0.0) + rate
    return {after: rate for after, rate in found.items() if rate > 1e-12}


def overflow(plan, lengths, action):
    """Probability that a job is lost."""
    return sum(rate for rate, _, lost in events(plan, lengths, action) if lost)


def number(plan, lengths):
    """The id of a state."""
    state = 0
    for room, length in zip(plan.buffers, lengths, strict=True):
        state = state * (room + 1) + length
    return state


def longer(plan, lengths):
    """The queue that each server works on: its longest, of equal ones the first it names."""
    chosen = []
    for server in plan.servers:
        best = server[0]
        for queue in server:
            if lengths[queue] > lengths[best]:
                best = queue
        chosen.append(best)
    return chosen


def last_buffer_first(plan, lengths):
    """The queue that each server works on: the last that is not empty."""

    def left(queue):
        return 0 if queue is None else 1 + left(plan.routes[queue])

    chosen = []
    for server in plan.servers:
        waiting = [queue for queue in server if lengths[queue] > 0] or list(server)
        chosen.append(min(waiting, key=left))
    return chosen
