"""Draws our speed relative to that of other libraries: a dot for each figure, on a logarithmic axis; used by bench/report.py."""
import html
import math

WIDTH, LEFT, RIGHT, ROW, TOP = 960, 330, 24, 40, 46
LEAST, MOST = 0.25, 8  # limits of the axis; dots beyond them lie at its ends
STYLE = """text { font: 14px system-ui, sans-serif; fill: #24292f }
.small { font-size: 12px; fill: #57606a }
.grid { stroke: #d0d7de }
.one { stroke: #57606a; stroke-width: 2 }
.ahead { fill: #1a7f37 }
.behind { fill: #bc4c00 }
circle { fill-opacity: 0.7 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .small { fill: #9198a1 } .grid { stroke: #3d444d } .one { stroke: #9198a1 } .ahead { fill: #3fb950 } .behind { fill: #f0883e }
}"""


def column(ratio):
    share = math.log(min(max(ratio, LEAST), MOST) / LEAST) / math.log(MOST / LEAST)
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def picture(groups):
    """SVG of a row for each of `groups`: (machine, peer, ratios)."""
    height = TOP + ROW * len(groups) + 14
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
             "<title>Our speed relative to that of other libraries</title>", f"<style>{STYLE}</style>",
             f'<text x="{column(1) - 8:.0f}" y="16" class="small" text-anchor="end">slower</text>',
             f'<text x="{column(1) + 8:.0f}" y="16" class="small">faster</text>']
    for ratio in (0.25, 0.5, 1, 2, 4, 8):
        x = column(ratio)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 10}" y2="{height - 8}" class="{"one" if ratio == 1 else "grid"}"/>')
        parts.append(f'<text x="{x:.1f}" y="{TOP - 14}" class="small" text-anchor="middle">{ratio:g}x</text>')
    for row, (machine, peer, ratios) in enumerate(groups):
        y = TOP + ROW * row + ROW / 2
        parts.append(f'<text x="0" y="{y - 2:.0f}">{html.escape(peer)}</text>')
        parts.append(f'<text x="0" y="{y + 13:.0f}" class="small">{html.escape(machine)}</text>')
        parts += [f'<circle cx="{column(ratio):.1f}" cy="{y:.0f}" r="6" class="{"ahead" if ratio >= 1 else "behind"}"/>' for ratio in sorted(ratios)]
    return "\n".join(parts) + "\n</svg>\n"
