"""Records of a firmware built with --debug -> events: bytes of either encoding in, a checked Trace out."""
