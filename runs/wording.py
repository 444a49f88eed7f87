"""Marks English words in Django-free modules for translation; pages translate them on display."""


def gettext_noop(text: str) -> str:
    """Return the text itself; its name makes the message extractor pick it up."""
    return text
