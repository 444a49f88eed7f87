"""Somebody's own load, statement by statement: its data, passes over them, and their plans."""

from runs.scenarios.statements.cold import COLD, RESTART_MS
from runs.scenarios.statements.scenario import FACTOR, SCENARIO
from runs.scenarios.statements.whole import CLIENTS, MOST_CLIENTS

__all__ = ("CLIENTS", "COLD", "FACTOR", "MOST_CLIENTS", "RESTART_MS", "SCENARIO")
