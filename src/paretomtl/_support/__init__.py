"""Helpers for every package: files, locks, argument checks, statistics. Nothing here knows about tasks or models."""
