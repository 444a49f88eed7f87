"""The right that each address of the site needs, by method."""

from runs.access.addresses import loaded

ADDRESSES = {name: rules.rights for name, rules in loaded().items()}
