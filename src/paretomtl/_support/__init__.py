"""Files, locks, argument checks, statistics: what every package may use. Nothing here knows of tasks or models."""
