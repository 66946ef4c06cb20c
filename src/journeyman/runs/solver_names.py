"""Names of methods as they are typed, without loading any of them.

A classic method is one line here: its name, and where its class is in `solvers/classics`.
"""

from collections.abc import Mapping

EXACT = ("linear-program", "column-generation")
OVER_FEATURES = ("reduced-program", "sgd-al")
"""Methods whose features are made from the demonstrations."""
CLASSICS: Mapping[str, str] = {
    "behaviour-cloning": "behaviour_cloning.BehaviourCloning",
    "projection": "nearest_mixture.Projection",
    "max-margin": "nearest_mixture.MaxMargin",
    "multiplicative-weights": "multiplicative_weights.MultiplicativeWeights",
    "inverse-program": "inverse_program.InverseProgram",
    "sampled-inverse-program": "inverse_program.SampledInverseProgram",
    "maximum-entropy": "maximum_entropy.MaximumEntropy",
    "maximum-margin-planning": "maximum_margin_planning.MaximumMarginPlanning",
    "policy-matching": "policy_matching.PolicyMatching",
    "imitation-reinforce": "imitation_reinforce.ImitationReinforce",
    "imitation-trust-region": "imitation_trust_region.ImitationTrustRegion",
    "adversarial-imitation": "adversarial_imitation.AdversarialImitation",
}
ASKING: Mapping[str, str] = {"dagger": "dagger.DAgger"}
"""Methods that ask an expert who can be asked: there is none in demonstrations."""
METHODS = (*EXACT, *OVER_FEATURES, *CLASSICS)
"""Methods that need a problem and nothing else."""
SOLVERS = ("auto", *METHODS)
"""What a run can ask for."""
