"""SGD-AL and the programs over combinations of features."""
