"""Bisections: the form that settles a verdict by measuring, and what came out."""

from typing import Any, cast

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext_lazy as _

from runs.access import addresses
from runs.access.selectors.permission_table import Right
from runs.analysis.inference import DEFAULT_EFFECT
from runs.bisections.selectors import bisections as found_by
from runs.bisections.services import bisection_questions, bisections
from runs.bisections.services.bisection_questions import Question, Wish
from runs.campaigns.services.campaign_limits import MOST_REPEATS
from runs.compare.selectors.address.state import CONDITIONS
from runs.compare.selectors.describe.verdict_words import HEADLINES, sized
from runs.models import Bisection, Server
from runs.queue.views.queue import Button, pressed
from runs.scenarios import registry
from runs.shared import pages
from runs.shared.errors import Refused, ServiceError

MOST_CHARACTERS = 100_000


class BisectionForm(forms.Form):
    """A verdict, as compare/ names it, and how it is settled."""

    campaign = forms.CharField(max_length=120, required=False, widget=forms.HiddenInput)
    base = forms.CharField(
        label=_("Base"), max_length=300, help_text=_("Such as commit:8de2d48.")
    )
    head = forms.CharField(label=_("Head"), max_length=300)
    metric = forms.CharField(max_length=100, required=False, widget=forms.HiddenInput)
    effect = forms.FloatField(
        min_value=0.2, max_value=100, required=False, widget=forms.HiddenInput
    )
    ignore = forms.MultipleChoiceField(
        choices=[(condition, condition) for condition in CONDITIONS],
        required=False,
        widget=forms.MultipleHiddenInput,
    )
    server = forms.ModelChoiceField(
        label=_("Server"), queryset=Server.objects.none(), to_field_name="slug"
    )
    scenario = forms.ChoiceField(label=_("Scenario"))
    levels = forms.CharField(
        label=_("Levels"),
        required=False,
        max_length=500,
        help_text=_("Such as clients=8; empty: those of the row that lost most."),
    )
    builds = forms.CharField(
        label=_("Commits between, or all folders"),
        required=False,
        max_length=MOST_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=_(
            "One per line, the oldest first: the folders from the base's to the head's. Empty: the "
            "folders that carry 7 digits or more of both commits, else builds of them, if the "
            "server is allowed to build."
        ),
    )
    repeats = forms.IntegerField(
        label=_("Repeats"),
        min_value=2,
        max_value=MOST_REPEATS - 1,
        initial=Wish.repeats,
    )
    most_repeats = forms.IntegerField(
        label=_("Most repeats"),
        min_value=3,
        max_value=MOST_REPEATS,
        initial=Wish.most_repeats,
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("base", "head"):
            if self[name].value():
                self.fields[name].widget = forms.HiddenInput()
        server = cast("forms.ModelChoiceField[Server]", self.fields["server"])
        server.queryset = Server.objects.select_related("hardware").order_by("name")
        scenario = cast(forms.ChoiceField, self.fields["scenario"])
        scenario.choices = [("", "–")] + [
            (scenario_there.slug, _(scenario_there.title))
            for scenario_there in registry.every()
        ]

    def clean_levels(self) -> dict[str, list[int | str]]:
        """`clients=1,8 scale=10` as levels by factor."""
        levels_by_factor: dict[str, list[int | str]] = {}
        for word in self.cleaned_data["levels"].split():
            name, equals, levels = word.partition("=")
            if not (name and equals and levels):
                message = _(
                    "“%(text)s” must be a factor and its level, as in clients=8."
                )
                raise forms.ValidationError(message % {"text": word})
            levels_by_factor[name] = [
                int(level) if level.isdecimal() and len(level) < 10 else level
                for level in levels.split(",")
            ]
        return levels_by_factor

    def wish(self) -> Wish:
        """The valid form."""
        fields = self.cleaned_data
        builds = fields["builds"].split()
        has_folders = any(build.startswith("/") for build in builds)
        same = ("campaign", "base", "head", "server", "ignore", "scenario", "repeats")
        return Wish(
            **{name: fields[name] for name in (*same, "most_repeats")},
            metrics=[fields["metric"]] if fields["metric"] else (),
            effect=fields["effect"] or DEFAULT_EFFECT,
            bindirs=builds if has_folders else None,
            commits=() if has_folders else builds,
            levels=fields["levels"] or None,
        )


@addresses.form("bisection-new", Right.QUEUE)
def bisection_new(request: HttpRequest) -> HttpResponse:
    """Settle a verdict that is red or undecided by measuring its builds in turn."""
    if request.method == "POST":
        form = BisectionForm(request.POST)
        bisection = _started(request, form) if form.is_valid() else None
        if bisection is not None:
            return redirect("bisection-detail", bisection_id=bisection.pk)
    else:
        names = ("campaign", "base", "head", "metric", "effect", "scenario", "server")
        initial: dict[str, Any] = {name: request.GET.get(name, "") for name in names}
        ignored = request.GET.get("ignore", "")
        form = BisectionForm(
            initial=initial | {"ignore": ignored.split(",") if ignored else []}
        )
    return render(request, "bisections/bisection_form.html", {"form": form})


@addresses.page("bisection-detail")
def bisection_detail(request: HttpRequest, bisection_id: int) -> HttpResponse:
    """What is measured, and what came out."""
    bisection = get_object_or_404(found_by.listed(to=request.user), pk=bisection_id)
    steps = found_by.measured(bisection)
    builds = [found_by.name_of(build) for build in bisection.builds]
    worst = steps[-1].worst if bisection.is_found else None
    context = {
        "bisection": bisection,
        "builds": list(enumerate(builds)),
        "steps": [
            (measured.step, [builds[position] for position in measured.places])
            for measured in steps
        ],
        "headline": HEADLINES.get(bisection.verdict, ""),
        "base": builds[0],
        "head": builds[-1],
        "low": builds[bisection.low],
        "high": builds[bisection.high],
        "size": sized(worst.comparison) if worst else "",
        "message": found_by.message_of(bisection),
        "made": found_by.made_for(bisection).values(),
    }
    return render(request, "bisections/bisection.html", context)


def _started(request: HttpRequest, form: BisectionForm) -> Bisection | None:
    try:
        question = bisection_questions.question(form.wish(), reader=request.user)
        problems = bisection_questions.problems(question)
        for problem in problems:
            form.add_error(None, f"{problem.message} {problem.remedy}")
        return None if problems else _start(request, question)
    except ServiceError as error:
        form.add_error(None, pages.sentence(error))
    except Refused as refused:
        for fault in refused.faults:
            form.add_error(None, f"{fault.message} {fault.remedy}".strip())
    return None


def _start(request: HttpRequest, question: Question) -> Bisection:
    bisection, is_new = bisections.start(question=question, by=cast(User, request.user))
    if not is_new:
        messages.info(request, _("The same question is being measured already."))
    return bisection


CANCEL = Button(
    Right.QUEUE, bisections.cancel, _("It is cancelled; finished runs stay.")
)


@addresses.action("bisection-cancel", CANCEL.right)
def bisection_cancel(request: HttpRequest, bisection_id: int) -> HttpResponse:
    """The button that cancels what has not ended."""
    return pressed(request, CANCEL, Bisection, bisection_id=bisection_id)
