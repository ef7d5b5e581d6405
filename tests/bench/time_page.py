"""The page of `./dev bench time`: less memory against a longer step, a picture for each program."""

import html
import math

WIDTH, HEIGHT, LEFT, TOP = 420, 260, 60, 30
COLOURS = ("#1a73e8", "#d93025", "#188038", "#9334e6")
STYLE = """
  :root { color-scheme: light dark; font: 15px/1.4 system-ui, sans-serif; }
  body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
  svg { max-width: 100%; } text { fill: currentColor; font-size: 12px; }
  .axis { stroke: currentColor; stroke-opacity: .4; }
  .grid { stroke: currentColor; stroke-opacity: .15; }
"""


def page(title, charts):
    """`charts`: {program: {line: [(part of the peak, ratio), ...]}}."""
    body = "\n".join(f"<h2>{html.escape(name)}</h2>\n{chart(lines)}"
                     for name, lines in charts.items())
    return (f"<!doctype html>\n<meta charset=utf-8>\n<title>{html.escape(title)}</title>\n"
            f"<style>{STYLE}</style>\n<h1>{html.escape(title)}</h1>\n"
            "<p>Memory as a part of the program's peak, against the time of a step relative to "
            f"TensorFlow's or JAX's own BFC with enough memory. Times are simulated.</p>\n{body}\n")


def chart(lines):
    """An SVG with one line for each allocator; the time has a logarithmic scale."""
    points = [point for line in lines.values() for point in line]
    if not points:
        return "<p>No run with less memory reached its end.</p>"
    least = min(part for part, _ in points)
    most = max(2.0, *(ratio for _, ratio in points))
    width, height = WIDTH - 2 * LEFT, HEIGHT - 2 * TOP

    def x(part):
        return LEFT + width * (1 - part) / max(1 - least, 1e-9)

    def y(ratio):
        return TOP + height * (1 - math.log(max(ratio, 1)) / math.log(most))

    marks = [f'<line class="grid" x1="{LEFT}" x2="{LEFT + width}" y1="{y(tick):.1f}" '
             f'y2="{y(tick):.1f}"/><text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" '
             f'text-anchor="end">{tick:g}</text>' for tick in ticks(most)]
    marks += [f'<text x="{x(part):.1f}" y="{TOP + height + 18}" text-anchor="middle">'
              f"{100 * part:.0f} %</text>" for part in sorted({part for part, _ in points})]
    for number, (name, line) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{x(part):.1f},{y(ratio):.1f}" for part, ratio in line)
        marks.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        marks += [f'<circle cx="{x(part):.1f}" cy="{y(ratio):.1f}" r="3" fill="{colour}"><title>'
                  f"{html.escape(name)}: {ratio:.2f} at {100 * part:.0f} %</title></circle>"
                  for part, ratio in line]
        marks.append(f'<text x="{LEFT + 10}" y="{TOP + 14 + 16 * number}" style="fill:{colour}">'
                     f"{html.escape(name)}</text>")
    return (f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img">\n'
            f'<line class="axis" x1="{LEFT}" x2="{LEFT + width}" y1="{TOP + height}" '
            f'y2="{TOP + height}"/>\n' + "\n".join(marks) + "\n</svg>")


def ticks(most):
    """1, 2, 5, 10 and so on, up to the largest value."""
    values = [base * 10 ** power for power in range(5) for base in (1, 2, 5)]
    return [value for value in values if value <= most]
