"""A plan in words and figures."""

from thimble_gpu import text


def explain(attached, prepared):
    plan, links = prepared.runner.plan, attached.chain.links
    names = ", ".join(device.name for device in attached.devices)
    total = sum(4 * v.value.shape.num_elements() for v in attached.model.trainable_variables)
    lines = [f"{len(links)} layers, {text.size(total)} of weights, batches of {plan.batch} on {names}",
             _MODES[plan.mode]]
    for device, peaks, limit in zip(attached.devices, prepared.peaks, prepared.limits):
        lines.append(f"{device.name}: {text.size(max((p.expected for p in peaks), default=0))} predicted, at most "
                     f"{text.size(max((p.most for p in peaks), default=0))}, of {text.size(limit)}")
        for peak in peaks:
            job = peak.job
            kind = "forward and backward" if job.is_last else "backward" if job.is_backward else "forward"
            sizes = [last - first for first, last in job.spans]
            early = "; the next weights come meanwhile" if job.overlaps else ""
            lines.append(f"  {kind:20} {job.pack.name}, {len(sizes)} portions of up to {max(sizes)}: "
                         f"{text.size(peak.expected)}{early}")
    return "\n".join(lines)


_MODES = {"pp": "a layer is on one device at a time; activations between packs wait on the host",
          "dp": "every device computes all layers for its share of the samples; gradients are "
                "summed up on the host"}
