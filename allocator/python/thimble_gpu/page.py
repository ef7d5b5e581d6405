"""Writes Thimble's pages: each is one self-contained HTML file that can be sent to anyone.

The sources are in web/: a frame for all pages, and the body, scripts and style of each page. They
are copied into the file unchanged.
"""

import base64
import html
import json
import os
import zlib

try:
    from thimble_gpu import files
except ImportError:  # ./dev runs it as a file beside its neighbours, without installing it
    import files

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "web")


def _source(name):
    with open(os.path.join(_FOLDER, name), encoding="utf-8") as file:
        return file.read()


def json_data(name, value):
    """Returns an element with a value that scripts find by its name."""
    # "</" would end the element that the data is in.
    text = json.dumps(value, separators=(",", ":")).replace("</", "<\\/")
    return f'<script id="{name}" type="application/json">{text}</script>\n'


def bytes_data(name, value):
    """Returns an element with compressed bytes, which inflated() of columns.js reads."""
    text = base64.b64encode(zlib.compress(value, 6)).decode()
    return f'<script id="{name}" type="text/plain">{text}</script>\n'


def render(title, subtitle, body, styles, scripts, data):
    """Returns the text of a page. `body`, `styles` and `scripts` name files; `data` comes from the
    functions above."""
    parts = {
        "title": html.escape(title),
        "subtitle": html.escape(subtitle),
        "style": "".join(map(_source, ("frame.css", *styles))),
        "body": _source(body),
        "data": data,
        "scripts": "".join(f"<script>\n{_source(name)}</script>\n"
                           for name in ("frame.js", *scripts)),
    }
    pieces = _source("frame.html").split("{{")
    return pieces[0] + "".join(parts[name] + rest for name, _, rest in
                               (piece.partition("}}") for piece in pieces[1:]))


def write(text, path):
    with files.replacing(path) as file:
        file.write(text)
