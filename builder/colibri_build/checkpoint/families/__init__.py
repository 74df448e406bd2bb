"""One file a model family: names, shapes and rules of its checkpoints."""
