"""Blocks of the documentation that need Stable-Baselines3, run with fewer steps than they say."""

import pages


def test_networks_answer_what_the_mixture_lacks(capsys):
    names = {}
    exec(compile(pages.blocks("policy-mixtures.md")[0], "policy-mixtures.md", "exec"), names)
    block = pages.blocks("policy-mixtures.md")[4]
    assert pages.needed_by(block) == "stable-baselines3"
    for said, done in {
        "50_000": "2_048",
        "rounds=5": "rounds=2",
        "rollouts=500": "rollouts=50",
    }.items():
        assert said in block
        block = block.replace(said, done)
    exec(compile(block, "policy-mixtures.md", "exec"), names)
    answer = names["answer"]
    assert answer.candidates.trace[:, 1].tolist() == [2, 3]
    assert answer.candidates.trace[1, 2] <= answer.candidates.trace[0, 2] + 1e-9
    assert abs(answer.policy.weights.sum() - 1) < 1e-9


def test_networks_plan_for_a_growing_mixture(capsys):
    names = {}
    page = "continuous-worlds.md"
    exec(compile(pages.blocks(page)[0], page, "exec"), names)
    before = names["answer"].candidates.trace
    block = pages.blocks("continuous-worlds.md")[2]
    for said, done in {"50_000": "1_024", "rounds=4": "rounds=2", "512": "256"}.items():
        assert said in block
        block = block.replace(said, done)
    exec(compile(block, page, "exec"), names)
    trace = names["answer"].candidates.trace
    assert trace[0].tolist() == before[0].tolist()
    assert len(trace) == 2
