"""What takes most, as horizontal bars with the largest on top."""

from collections.abc import Mapping, Sequence

from runs.charts.figure import Figure, layout, title

MOST_CHARACTERS = 48


def ranking(labels: Sequence[str], parts: Mapping[str, Sequence[float]], *, x_title: str) -> Figure:
    """One bar per label, made of the parts; the labels are in the order of their size.

    Long labels are cut; the hover text has them whole. The numbers keep equal labels apart.
    """
    names = [f"{place}. {_cut(label)}" for place, label in enumerate(labels, start=1)]
    return {
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "name": name,
                "y": names,
                "x": list(values),
                "customdata": list(labels),
                "hovertemplate": "%{customdata}<br>%{fullData.name}: %{x:,.6~g}<extra></extra>",
            }
            for name, values in parts.items()
        ],
        "layout": layout(
            barmode="stack",
            bargap=0.25,
            xaxis={"title": title(x_title), "rangemode": "tozero", "automargin": True},
            yaxis={"type": "category", "autorange": "reversed", "automargin": True},
            showlegend=len(parts) > 1,
            legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        ),
    }


def _cut(label: str) -> str:
    return label if len(label) <= MOST_CHARACTERS else f"{label[: MOST_CHARACTERS - 1]}…"
