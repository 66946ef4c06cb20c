"""Names of methods as they are typed, without loading any of them.

A classic method is one line here: its name, and the class in the module of the same name in
`solvers/classics`.
"""

from collections.abc import Mapping

EXACT = ("linear-program", "column-generation")
OVER_FEATURES = ("reduced-program", "sgd-al")
"""Methods whose features are made from the demonstrations."""
CLASSICS: Mapping[str, str] = {
    "behaviour-cloning": "BehaviourCloning",
    "projection": "Projection",
    "max-margin": "MaxMargin",
    "multiplicative-weights": "MultiplicativeWeights",
    "inverse-program": "InverseProgram",
    "sampled-inverse-program": "SampledInverseProgram",
    "maximum-entropy": "MaximumEntropy",
    "maximum-margin-planning": "MaximumMarginPlanning",
    "policy-matching": "PolicyMatching",
    "imitation-reinforce": "ImitationReinforce",
    "imitation-trust-region": "ImitationTrustRegion",
    "adversarial-imitation": "AdversarialImitation",
}
ASKING: Mapping[str, str] = {"dagger": "DAgger"}
"""Methods that ask an expert who can be asked: there is none in demonstrations."""
METHODS = (*EXACT, *OVER_FEATURES, *CLASSICS)
"""Methods that need a problem and nothing else."""
SOLVERS = ("auto", *METHODS)
"""What a run can ask for."""
