"""The pictures of a page's charts, as their addresses give them."""

import html
import re
import xml.etree.ElementTree as ET

from runs.charts import png as raster

_ADDRESS = re.compile(r'href="([^"]*)">\s*Picture for other pages')


def pictures_of(client, path, *, dated=True):
    """The words in the picture of each chart of a page, by its address; asserts what all have."""
    page = client.get(path).content.decode()
    figures = re.findall(r"<figure class=\"chart\".*?</figure>", page, re.DOTALL)
    assert figures, path
    found = {}
    for figure in figures:
        (written,) = _ADDRESS.findall(figure)
        address = html.unescape(written)
        found[address] = words_in(client, address, dated=dated)
    return found


def words_in(client, address, *, dated=True):
    """The words in a picture: with the site, and of when its figures are."""
    answer = client.get(address)
    assert answer.status_code == 200, address
    assert answer.headers["Content-Type"] == "image/svg+xml"
    again = client.get(address, headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status_code == 304, address
    assert answer.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    words = " ".join(ET.fromstring(answer.content).itertext()).replace("\xa0", " ")
    assert "figures of 2" in words or not dated, address
    assert "http://testserver/" in words, address
    png = client.get(address.replace("chart.svg", "chart.png"))
    if words.isascii() or raster._writes("DejaVu Sans", raster.JAPANESE):
        assert png.content.startswith(b"\x89PNG"), address
    else:
        assert png.status_code in (200, 501), address
    return words
