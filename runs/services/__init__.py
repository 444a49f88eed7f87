"""All writes: one module per noun, keyword-only arguments, one transaction each."""
