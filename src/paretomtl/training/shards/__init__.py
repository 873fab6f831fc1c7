"""Runs in shards, and the executors that train them."""
