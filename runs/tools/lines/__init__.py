"""Lines of any tool: metric=value unit."""
