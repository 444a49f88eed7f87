"""Settings in other forms than postgresql.conf: each is a module, and a row of `FORMS`."""

import re

from runs.postgresql_settings.forms import (
    environment,
    inline,
    json_documents,
    named_values,
    pairs,
    program_strings,
    shell_words,
    sql_text,
    tables,
    yaml_documents,
)
from runs.postgresql_settings.forms.reading import Form, FormReading
from runs.wording import gettext_noop as _

# In the order in which a text is tried: what has the strictest grammar comes first.
FORMS = (
    Form("json", _("JSON"), json_documents.read),
    Form("table", _("a table"), tables.read),
    Form("environment", _("variables of an environment"), environment.read),
    Form("show", _("answers of SHOW"), pairs.read_shows),
    Form("yaml", _("YAML"), yaml_documents.read),
    Form("pairs", _("names and values in lines of their own"), pairs.read),
    Form("session", _("a session of psql"), sql_text.read_session),
    Form("sql", _("statements of SQL"), sql_text.read_script),
    Form("named", _("names and values of a program"), named_values.read),
    Form("inline", _("names and values in one line"), inline.read),
    Form("strings", _("strings of a program"), program_strings.read),
    Form("command", _("commands of a shell"), shell_words.read),
)


# A number or a word, and brackets that were opened elsewhere.
_CLOSED = re.compile(r"[\w.+-]{1,80}+[)\]}]+[;,]?")


def read(text: str) -> tuple[Form, FormReading] | None:
    """The form of a text and what it sets; None for a text that is in none of them.

    A quote or a bracket without its other one is of the language around: such a value is a fault.
    """
    for form in FORMS:
        if (reading := form.read(text)) is not None:
            for line, _name, value in reading.settings:
                if value.count('"') % 2 or _CLOSED.fullmatch(value):
                    reading.refuse_rest(line, value)
            return form, reading
    return None
