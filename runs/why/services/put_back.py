"""Whether the records of an ablation's arms show what was put back in them.

A statement can succeed and change nothing that counts: an index may stay invalid, and what a role
sets wins over the cluster's file. Such an arm tells nothing of its suspect.
"""

from collections.abc import Mapping

from django.db.models import Q

from runs.analysis.why import suspects
from runs.analysis.why.proof import A, B
from runs.analysis.why.suspects import Side, Suspect
from runs.models import Ablation
from runs.why.selectors.ablations import ARM
from runs.why.services import sides


def note_unchanged(*, ablation: Ablation) -> None:
    """Mark the suspects that their arms show as B has them, whenever a look is over.

    Five queries and a file for each run of A, of B and of these arms; none where only the plans of
    runs were changed.
    """
    tried = [
        suspect
        for suspect in map(Suspect.from_json, ablation.suspects)
        if suspect.put_back or suspect.statements
    ]
    if not tried:
        return
    side_of = _sides(ablation, [suspect.key for suspect in tried])
    unchanged = {suspect.key for suspect in tried if _is_unchanged(suspect, side_of)}
    ablation.suspects = [
        {**row, "unchanged": row["name"] in unchanged} for row in ablation.suspects
    ]
    ablation.save(update_fields=["suspects"])


def _sides(ablation: Ablation, names: list[str]) -> Mapping[str, Side]:
    """The sides of A, of B and of these arms, by the names of their arms."""
    is_wanted = Q(**{f"levels__{ARM}__in": [A, B, *names]})
    cells = list(
        ablation.campaign.cells.filter(is_wanted).select_related("campaign__scenario")
    )
    side_of = sides.read_sides(cells)
    return {str(cell.levels[ARM]): side_of[cell.pk] for cell in cells}


def _is_unchanged(suspect: Suspect, side_of: Mapping[str, Side]) -> bool:
    if not {A, B, suspect.key} <= side_of.keys():
        return False
    of_b = _differences(side_of[A], side_of[B])
    of_arm = _differences(side_of[A], side_of[suspect.key])
    return any(
        key in of_b and of_arm.get(key) == of_b[key]
        for key in suspect.members or (suspect.key,)
    )


def _differences(a: Side, b: Side) -> dict[str, str]:
    """What differs between two arms, by key, as the second one has it."""
    return {suspect.key: suspect.b for suspect in suspects.find(a, b, None)}
