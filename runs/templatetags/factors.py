"""How the levels of a run are written on pages."""

from django import template

from runs.cells.selectors.level_texts import choice, level

register = template.Library()
register.filter(level)
register.filter(choice)
