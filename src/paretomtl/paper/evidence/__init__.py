"""Beyond the paper: which set of models is best for its cost, by one recipe for all."""
