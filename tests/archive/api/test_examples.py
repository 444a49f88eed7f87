"""Each request of the documents that needs no login, sent to an instance with the archive alone."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from runs.archive.services import load
from runs.published import reading
from runs.workloads.services import scenarios
from tests import factories

pytestmark = pytest.mark.django_db

DOCUMENTS = Path(__file__).parents[3] / "docs"
ASKED = re.compile(
    r"^curl (?:-OJ )?['\"]?(http://localhost:8000/[^'\"\s]+)['\"]?$", re.MULTILINE
)
# Its campaign is uploaded by the example before it.
AFTER_AN_UPLOAD = "campaign=nightly"


def examples() -> list[str]:
    said = [ASKED.findall(each.read_text()) for each in sorted(DOCUMENTS.glob("*.md"))]
    return [
        address for each in said for address in each if AFTER_AN_UPLOAD not in address
    ]


def test_examples_of_the_documents_answer_with_something(client):
    scenarios.sync()
    load(files=[each for each in reading.files() if each.stem == "wg1-2013"])
    server = factories.server("this-machine")
    factories.installation(server, "16.14")
    asked = examples()
    assert len(asked) >= 5
    for address in asked:
        parts = urlsplit(address)
        answer = client.get(f"{parts.path}?{parts.query}")
        assert answer.status_code == 200, address
        if answer["Content-Type"].startswith("application/json"):
            rows = answer.json()
            assert rows.get("results", rows), address
