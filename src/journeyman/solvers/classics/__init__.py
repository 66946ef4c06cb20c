"""The classic apprentices: methods of the literature, one a file, on the same problem.

Each takes an `Apprenticeship`, returns an `Answer` and is certified like every other solver. A
method that was made for another cost class runs in its own geometry on any problem; the answer's
value and lower bound are always those of the problem at hand, by exact evaluation.
"""
