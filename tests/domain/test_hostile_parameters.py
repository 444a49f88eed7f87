"""Whatever stands in a parameter, page and API say what is wrong with it, and never 500."""

from collections.abc import Iterator
from urllib.parse import parse_qsl, urlencode

import pytest

from runs.archive import services
from runs.published import reading
from runs.workloads.services import scenarios
from tests.domain.cost import addresses, axes, database
from tests.each import check_each

pytestmark = pytest.mark.django_db
PUBLICATION = "wg1-2013"
WORDS = (
    # More digits than Python makes a number of.
    "9" * 4400,
    "-1",
    # Digits that are none of ours, and those that are no number.
    "٣",
    "²",
    "1e999",
    "nan",
    "1_0",
    "revision:",
    "campaign:~=",
    "%s",
)


def hostile_addresses(known, words) -> Iterator[str]:
    """Each address with one word in each of its parameters, the others as they are asked for."""
    asked = set()
    for address in addresses.addresses():
        path, _mark, query = address.format(**known).partition("?")
        pairs = parse_qsl(query, keep_blank_values=True)
        for place, (name, _value) in enumerate(pairs):
            if (path, name) in asked:
                continue
            asked.add((path, name))
            for word in words:
                others = [*pairs[:place], (name, word), *pairs[place + 1 :]]
                yield f"{path}?{urlencode(others)}"


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "words", [WORDS[:1], pytest.param(WORDS[1:], marks=pytest.mark.slow)]
)
def test_no_word_in_a_parameter_breaks_an_answer(client, settings, words):
    settings.RATE_ANONYMOUS = 0
    scenarios.sync()
    services.load(files=[each for each in reading.files() if each.stem == PUBLICATION])
    database.grow(2)
    database.files()
    axes.base()
    client.raise_request_exception = False
    asked = []

    def check(address: str) -> None:
        asked.append(address)
        assert client.get(address).status_code < 500, address

    check_each(list(hostile_addresses(database.known(), words)), check)
    assert len(asked) > 100 * len(words)
