"""Verdicts, differences and series in the words of the reader."""
