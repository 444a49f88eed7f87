"""The first page, the search for everything, the style guide."""
