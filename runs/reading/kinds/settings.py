"""A postgresql.conf, or what people paste in place of one: `{"text": ...}`."""

from runs.postgresql_settings.conf_file import read
from runs.postgresql_settings.conf_text import ConfFile
from runs.reading.readers import stateless

READER = stateless(lambda request: read(request["text"]), ConfFile)
