"""What a server of one version would run with: the settings given, else its defaults."""

from collections.abc import Mapping

from runs.postgresql_settings import unlisted, values
from runs.postgresql_settings.catalogue import Setting, setting


class Effective:
    """Given settings over the version's defaults.

    Values that the server would refuse count as not given: another check reports them.
    """

    def __init__(self, settings: Mapping[str, str], major: str) -> None:
        self.major = major
        self.given = {
            (unlisted.alias(name, major) or name).lower(): value
            for name, value in settings.items()
        }

    def number(self, name: str) -> float | None:
        """The value in the setting's own unit; None where the version has no such setting."""
        value = self._value(name)
        return None if value is None or isinstance(value, str) else value

    def bytes(self, name: str) -> int | None:
        """The amount of memory; None for 0, -1 and where the version has no such setting."""
        catalogued = setting(name, self.major)
        if catalogued is None:
            return None
        try:
            return values.convert_to_bytes(self._text(catalogued), catalogued)
        except values.BadValue:
            return values.convert_to_bytes(catalogued.boot, catalogued)

    def is_on(self, name: str) -> bool:
        """Whether a bool setting is on."""
        return self._value(name) is True

    def word(self, name: str) -> str:
        """The value of an enum or string; empty where the version has no such setting."""
        value = self._value(name)
        return value if isinstance(value, str) else ""

    def __contains__(self, name: str) -> bool:
        return name in self.given

    def _text(self, catalogued: Setting) -> str:
        return self.given.get(catalogued.name.lower(), catalogued.boot)

    def _value(self, name: str) -> values.Value | None:
        catalogued = setting(name, self.major)
        if catalogued is None:
            return None
        try:
            return values.parse(self._text(catalogued), catalogued)
        except values.BadValue:
            return values.parse(catalogued.boot, catalogued)
