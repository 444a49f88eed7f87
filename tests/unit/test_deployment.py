"""Settings, the table of docs/deployment.md and docker-compose.yml name the same variables."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
# The image sets the first; the second is for developers.
NOT_COMPOSED = {"BENCHLAB_VAR", "DEBUG"}


@pytest.fixture(scope="module")
def read():
    """What settings.py reads of the environment."""
    text = (ROOT / "benchlab/settings.py").read_text()
    return set(re.findall(r'env\.\w+\(\s*"([A-Z_]+)"', text))


def test_the_documentation_lists_what_can_be_set(read):
    text = (ROOT / "docs/deployment.md").read_text()
    cells = re.findall(r"^\| (`[A-Z].*?) \|", text, re.MULTILINE)
    documented = {name for cell in cells for name in re.findall(r"`([A-Z_]+)", cell)}

    assert len(read) > 20
    assert documented == read


def test_the_composition_passes_on_what_can_be_set(read):
    composed = yaml.safe_load((ROOT / "docker-compose.yml").read_text())

    for service in ("migrate", "web", "worker", "control"):
        assert set(composed["services"][service]["environment"]) == read - NOT_COMPOSED, service


def test_what_has_no_value_in_the_composition_is_not_an_empty_text():
    """An empty text is no number: the services would not start."""
    composed = yaml.safe_load((ROOT / "docker-compose.yml").read_text())

    values = composed["services"]["web"]["environment"].values()
    assert not [value for value in values if value is not None and value.endswith(":-}")]
