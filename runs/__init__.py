"""BenchLab's one Django app and its engines; each layer is sliced by the same nouns."""
