"""Generate the C tree: ModelFolder + Board -> SourceTree."""
