"""Read a trained checkpoint: folder -> Model."""
