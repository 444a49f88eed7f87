"""How often pages ask for what is new."""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

# How often a page asks for what is new, while something goes on that it shows.
SECONDS = {
    "home": 2,
    "campaign": 2,
    "run": 2,
    "server check": 1,
    "bisection": 5,
    "why": 10,
}


@register.simple_tag
def polled(subject: str) -> SafeString:
    """`{% polled "run" %}`: the attribute for htmx. static/js/poll.js rests while nobody looks."""
    return format_html('hx-trigger="every {}s"', SECONDS[subject])
