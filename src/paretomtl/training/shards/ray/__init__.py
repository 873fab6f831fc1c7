"""Shards on a Ray cluster."""
