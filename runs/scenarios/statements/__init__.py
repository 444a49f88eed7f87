"""Somebody's own load, statement by statement: its data, passes over them, and their plans."""

from runs.scenarios.statements.scenario import FACTOR, SCENARIO

__all__ = ("FACTOR", "SCENARIO")
