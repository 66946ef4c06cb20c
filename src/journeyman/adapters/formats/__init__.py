"""Containers (NPZ, Parquet, Arrow), their sizes checked before any memory is asked for."""
