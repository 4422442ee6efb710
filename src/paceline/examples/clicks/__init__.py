"""Wide & Deep on click logs drawn from a model whose best possible AUC is known."""
