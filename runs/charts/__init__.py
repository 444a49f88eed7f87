"""Plotly figures as plain data: pure functions. No Django."""
