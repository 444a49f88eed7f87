"""What a comment of a pull request says of a bisection, as Markdown."""

from django.urls import reverse
from django.utils.translation import gettext as _

from runs.bisections.selectors import bisections
from runs.bisections.selectors.bisections import Measured
from runs.compare.api.markdown import Address, escape_link, fenced, markdown, plain
from runs.compare.selectors.describe.verdict_words import sized
from runs.models import Bisection, BisectionStep, Build

MOST_LOG = 4000


def settled(bisection: Bisection, address: Address) -> str:
    """What a bisection says: base against head as measured in turn, and the commit it found."""
    steps = bisections.measured(bisection)
    builds_text = _made(bisection)
    if not steps:
        sentence = plain(bisections.message_of(bisection)) or _(
            "The builds of both commits are ready."
        )
        return builds_text or f"{sentence}\n"
    first_step, last_step = steps[0], steps[-1]
    link = f"[{plain(last_step.step.campaign.slug)}]({_page(last_step.step, address)})"
    words = {"server": plain(bisection.server.name), "campaign": link}
    if not bisection.verdict:
        if bisection.state == Bisection.State.RUNNING:
            return (
                _("Being measured in turn on %(server)s: %(campaign)s.") % words + "\n"
            )
        return _("Not settled on %(server)s: %(campaign)s.") % words + "\n"
    paragraphs = [
        markdown(first_step.ends, address).rstrip(),
        _("Measured in turn on %(server)s: %(campaign)s.") % words,
    ]
    if bisection.state == Bisection.State.RUNNING:
        paragraphs.append(_("Bisecting to find the commit that made it slower."))
    elif bisection.verdict == "slower":
        paragraphs.append(_culprit(bisection, last_step))
    if bisection.message:
        paragraphs.append(plain(bisections.message_of(bisection)))
    if builds_text:
        paragraphs.append(builds_text.rstrip())
    return "\n\n".join(paragraphs) + "\n"


def _made(bisection: Bisection) -> str:
    """What is being built, and what could not be built, with the end of what that printed."""
    if not (bisection.is_building or bisection.state == Bisection.State.FAILED):
        return ""
    lines = []
    for commit, build in bisections.made_for(bisection).items():
        words = {"commit": f"`{commit[:12]}`", "server": plain(bisection.server.name)}
        if build.state in Build.OPEN:
            lines.append(_("%(commit)s is being built on %(server)s.") % words)
        elif build.state == Build.State.FAILED:
            words |= {"code": f"`{build.code}`", "why": plain(_(build.message))}
            lines.append(
                _("%(commit)s could not be built on %(server)s (%(code)s): %(why)s")
                % words
            )
            if build.log:
                lines.append(fenced(build.log[-MOST_LOG:]))
    return "\n\n".join(lines) + "\n" if lines else ""


def _culprit(bisection: Bisection, last_step: Measured) -> str:
    low, high = (
        bisection.builds[position] for position in (bisection.low, bisection.high)
    )
    words = {
        "low": f"`{bisections.name_of(low)}`",
        "high": f"`{bisections.name_of(high)}`",
    }
    if not bisection.is_found:
        return _("The loss lies between %(low)s and %(high)s.") % words
    worst = last_step.worst
    words["size"] = sized(worst.comparison) if worst else ""
    return _("**%(high)s made it slower**: %(size)s than %(low)s.") % words


def _page(step: BisectionStep, address: Address) -> str:
    return escape_link(address(reverse("campaign-detail", args=[step.campaign.slug])))
