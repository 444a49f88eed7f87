"""`re`, for the files that benchlab-pair installs: they run on Python 3.9 and 3.10, too.

Patterns for foreign text never go back (possessive quantifiers, atomic groups), so that they read
a hostile line in linear time. Python's own module has these from 3.11 on. Below it there is
`regex` of PyPI, which finds the same.
"""

import sys

if sys.version_info >= (3, 11):
    import re
else:
    import regex as re

__all__ = ["re"]
