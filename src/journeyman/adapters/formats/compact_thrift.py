"""Thrift's compact protocol, as far as it takes to look into a Parquet file.

Structs are read field by field; only the fields asked for are kept, the others are stepped over, so
that nothing grows beyond what was asked for. `IndexError` says that the data end too early or make
no sense.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

Wanted: TypeAlias = Mapping[int, Any]
"""Numbers of fields; those of structs, and of lists of structs, map to what is wanted of these."""
DEEPEST = 12
"""Structs within structs."""
MOST_ITEMS = 1 << 17
"""Items of a list that is kept."""
LONGEST = 64
"""Bits of a whole number."""
STOP, TRUE, FALSE, BYTE, SHORT, INT, LONG, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(13)
"""Kinds of values."""


class CompactReader:
    """Reads `data` from its beginning; `at` is where it has come to."""

    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0

    def struct(self, wanted: Wanted, depth: int = 0) -> dict[int, Any]:
        """The fields that are wanted of a struct, and are there."""
        found: dict[int, Any] = {}
        number = 0
        while kind := self._byte():
            number = number + (kind >> 4) if kind >> 4 else self._signed()
            if number in wanted:
                found[number] = self._value(kind & 15, wanted[number], depth + 1)
            else:
                self._skip(kind & 15, depth + 1)
        return found

    def _value(self, kind: int, wanted: Wanted, depth: int) -> Any:
        if kind in (SHORT, INT, LONG):
            return self._signed()
        if kind == BINARY:
            length = self._varint()
            self.at += length
            return self._data[self.at - length : self.at]
        if kind == LIST and depth < DEEPEST:
            kind, count = self._list_head()
            if count > MOST_ITEMS:
                raise IndexError
            return [self._value(kind, wanted, depth + 1) for _ in range(count)]
        if kind == STRUCT and depth < DEEPEST:
            return self.struct(wanted, depth)
        raise IndexError

    def _skip(self, kind: int, depth: int) -> None:
        if kind in (TRUE, FALSE):  # the value of a flag is its kind
            return
        if kind == BYTE:
            self.at += 1
        elif kind in (SHORT, INT, LONG):
            self._varint()
        elif kind == DOUBLE:
            self.at += 8
        elif kind == BINARY:
            length = self._varint()
            self.at += length
        elif kind in (LIST, SET) and depth < DEEPEST:
            kind, count = self._list_head()
            for _ in range(count):
                self._skip(BYTE if kind in (TRUE, FALSE) else kind, depth + 1)
        elif kind == STRUCT and depth < DEEPEST:
            self.struct({}, depth)
        else:
            raise IndexError

    def _list_head(self) -> tuple[int, int]:
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self._varint()
        if count > len(self._data) - self.at:  # every item takes a byte
            raise IndexError
        return head & 15, count

    def _byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]

    def _varint(self) -> int:
        value, shift = 0, 0
        while shift <= LONGEST:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
        raise IndexError

    def _signed(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
