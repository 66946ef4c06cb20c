"""From figures to places on an axis, by ratios where they differ by much."""

import math
from collections.abc import Sequence

from journeyman.report.line_chart import linear_ticks, log_ticks

STEEP = 10.0
"""From this ratio on equal ratios have equal distances."""
LEAST = 1e-6
"""Positive figures below this share of the largest are drawn there: they are rounding."""
ROOM = 0.04
"""Share of the axis that is left free at both ends."""
MOST_TICKS = 6


class Scale:
    """Shares of an axis; `log` says whether it is logarithmic.

    >>> scale = Scale([1.0, 10.0, 100.0])
    >>> scale.log, round(scale.share(10.0), 3), scale.ticks
    (True, 0.5, (1.0, 10.0, 100.0))
    >>> Scale([0.0, 5.0]).log
    False
    """

    def __init__(self, values: Sequence[float]) -> None:
        low, high = min(values), max(values)
        self.log = low > 0 and high / low >= STEEP
        self.floor = LEAST * high if self.log else -math.inf
        low, high = self._place(low), self._place(high)
        room = ROOM * (high - low) or abs(low) / 10 or 1.0
        self.low, self.high = low - room, high + room
        ticks = (log_ticks if self.log else linear_ticks)(self.low, self.high)
        self.ticks = ticks if len(ticks) <= MOST_TICKS else ticks[::2]

    def _place(self, value: float) -> float:
        return math.log10(max(value, self.floor)) if self.log else value

    def share(self, value: float) -> float:
        """The place of a value between 0 and 1."""
        return (self._place(value) - self.low) / (self.high - self.low)

    @property
    def words(self) -> str:
        """To be said beside the axis."""
        return " (logarithmic scale)" if self.log else ""
