"""Cells with what is stored of them, and the conditions under which they were measured."""
