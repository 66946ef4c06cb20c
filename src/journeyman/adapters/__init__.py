"""Doors to other packages, each an extra of its own; nothing here is imported before it is used."""
