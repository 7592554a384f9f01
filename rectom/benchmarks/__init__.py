"""Benchmarks, a file each: loading, named subsets, gold answers."""
