"""A checked Trace -> figures, and those as a page, JSON, Markdown or a Perfetto trace."""
