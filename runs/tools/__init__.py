"""One folder for each benchmark tool: its command lines, and the parser of its output."""
