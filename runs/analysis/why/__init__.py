"""Why two sides differ: where the time went, what may have done it, and what is proven.

`account` reads what a run recorded, `parts` splits its time per transaction, `suspects` are the
differences that can act, and `proof` says what putting them back explains. docs/why.md has the
method.
"""
