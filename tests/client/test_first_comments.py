"""What a new user reads first: the comments of the first five commits, through the client."""

import json
import random
import re
import subprocess
import urllib.parse
import urllib.request

import pytest

from tests.compare.selectors.test_empty_cases import HOLE
from tests.unit.tools.pgbench.samples import sample

pytestmark = pytest.mark.django_db(transaction=True)
RUN = ("--campaign", "nightly", "--scenario", "tpcb-like", "--tool", "pgbench")
SUBJECTS = ("Import", "Add an index", "Tidy up", "Drop the index", "Explain why")
LEVELS = (1000.0, 1004.0, 998.0, 780.0, 782.0)


@pytest.fixture
def committed(tmp_path):
    """Makes the commit with this subject."""

    def git(*argv):
        who = ["-c", "user.name=Jane Doe", "-c", "user.email=jane@example.org"]
        return subprocess.check_output(
            ["git", *who, *argv], cwd=tmp_path, text=True
        ).strip()

    git("init", "-q", "-b", "main")

    def made(subject):
        git("commit", "-q", "--allow-empty", "-m", subject)
        return git("rev-parse", "HEAD")

    return made


def measured(level, generator):
    """pgbench's output of a run at about this level."""
    tps = level * generator.lognormvariate(0, 0.005)
    output = sample("18.6/a_simple_update").stdout
    return re.sub(r"tps = [0-9.]+", f"tps = {tps:.6f}", output)


def comment(reach, sha, language):
    """The Markdown of a commit's comparison in a language."""
    query = {
        "campaign": "nightly",
        "base": "history:main",
        "head": f"revision:{sha}",
        "format": "md",
    }
    request = urllib.request.Request(
        f"{reach['BENCHLAB_URL']}/api/v1/compare/?{urllib.parse.urlencode(query)}",
        headers={"Accept-Language": language},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode()


def test_the_first_five_comments_have_no_hole_and_name_the_loss(
    upload, reach, committed
):
    generator = random.Random(5)
    statuses, texts = [], {}
    for subject, level in zip(SUBJECTS, LEVELS, strict=True):
        sha = committed(subject)
        for _repeat in range(3):
            done = upload(
                *RUN, "--job", sha, "-", stdin=measured(level, generator), **reach
            )
            assert done.status == 0, done
        told = upload("--campaign", "nightly", "--compare", "main", **reach)
        statuses.append(told.status)
        texts[subject] = [comment(reach, sha, language) for language in ("en", "ja")]
        assert texts[subject][0].splitlines()[0] in told.out

    # The baseline, two calm commits, the loss, and one that the loss is not of.
    assert statuses == [0, 0, 0, 1, 0], json.dumps(texts, ensure_ascii=False, indent=1)
    for subject, both in texts.items():
        for text in both:
            shown = re.sub(r"\(http[^)]*\)", "", text).replace("  \n", "\n")
            assert not HOLE.search(re.sub(r"\n\n", "\n", shown)), (subject, text)
    assert "“Drop the index”, Jane Doe" in texts["Explain why"][0]
