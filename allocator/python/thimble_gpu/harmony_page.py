"""Draws a schedule of `thimble harmony` as one HTML file: what each GPU and link does when."""

import json

from thimble_gpu import page


def render(schedule):
    """The page for a schedule that `--schedule` wrote."""
    plan = schedule["plan"]
    title = (f"{plan['layers']} layers, {plan['batch']} samples on {plan['gpus']} "
             f"GPU{'s' if plan['gpus'] > 1 else ''}: {plan['seconds']:.3f} s")
    swapped = (plan["swap_in_bytes"] + plan["swap_out_bytes"]) / 2**30
    subtitle = (f"{plan['mode']}, rules {plan['rules']}: {swapped:.2f} GiB between host and GPUs, "
                f"{plan['p2p_bytes'] / 2**30:.2f} GiB between GPUs, computing "
                f"{plan['compute_fraction'] * 100:.1f} % of the time, at most "
                f"{max(plan['peak_bytes']) / 2**30:.2f} GiB on a GPU.")
    return page.render(title, subtitle, "gantt.html", (), ("gantt.js",),
                       page.json_data("schedule", schedule))


def write(schedule_path, page_path):
    with open(schedule_path, encoding="utf-8") as file:
        text = render(json.load(file))
    page.write(text, page_path)
