"""The colours of the versions: for every reader, on a light and on a dark page."""

import itertools
import re

import numpy as np
import pytest

from runs.charts import palette

MAJORS = ["9.2", "9.3", "9.4", "9.5", "9.6", *(str(major) for major in range(10, 20))]

# Machado, Oliveira and Fernandes 2009, full severity, on linear RGB.
SIGHTS = {
    "normal": np.eye(3),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
}
TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def linear(colour):
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    weights = np.array([0.2126, 0.7152, 0.0722])
    light, dark = sorted((float(linear(c) @ weights) for c in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def oklab(colour, sight):
    return TO_LAB @ np.cbrt(TO_CONES @ np.clip(SIGHTS[sight] @ linear(colour), 0, 1))


def test_each_major_version_from_9_2_to_19_has_its_own_colour_and_marker():
    assert list(palette.STYLES) == MAJORS
    assert len({style.colour for style in palette.STYLES.values()}) == len(MAJORS)
    assert len({style.symbol for style in palette.STYLES.values()}) == len(MAJORS)


@pytest.mark.parametrize("style", [*palette.STYLES.values(), palette.OTHER])
@pytest.mark.parametrize("page", ["#ffffff", "#14181f"])
def test_a_line_is_readable_on_a_light_and_on_a_dark_page(style, page):
    assert re.fullmatch("#[0-9a-f]{6}", style.colour)
    assert contrast(style.colour, page) >= 3


@pytest.mark.parametrize("sight", SIGHTS)
def test_versions_near_each_other_look_different(sight):
    for one, other in itertools.combinations(range(len(MAJORS)), 2):
        if other - one <= 2:
            colours = [palette.style(MAJORS[index]).colour for index in (one, other)]
            distance = np.linalg.norm(oklab(colours[0], sight) - oklab(colours[1], sight))
            assert distance >= 0.09, (MAJORS[one], MAJORS[other])


def test_a_version_without_a_colour_is_grey():
    assert palette.style("42") == palette.OTHER


def test_dashes_repeat_when_they_run_out():
    assert palette.dash(0) == "solid"
    assert palette.dash(len(palette.DASHES)) == "solid"
