"""Describes a plan in words and figures."""

from thimble_gpu import text


def explain(attached, prepared):
    plan, stages = prepared.runner.plan, attached.chain.stages
    names = ", ".join(device.name for device in attached.devices)
    total = sum(4 * v.value.shape.num_elements() for v in attached.model.trainable_variables)
    lines = [f"{len(stages)} layers, {text.size(total)} of weights, batches of {plan.batch} on "
             f"{names}", _MODES[plan.mode], f"links: {attached.links.description}"]
    for device, peaks, expected, most, limit in zip(
            attached.devices, prepared.peaks, prepared.predicted(), prepared.at_most(),
            prepared.limits):
        lines.append(f"{device.name}: {text.size(expected)} predicted, at most {text.size(most)}, "
                     f"of {text.size(limit)}")
        for peak in peaks:
            job = peak.job
            kind = "backward" if job.is_backward else "forward"
            if job.is_last:
                kind = "forward and backward"
            if job.saves or job.restores:
                kind += ", saved"
            sizes = [last - first for first, last in job.spans]
            early = "; loads the next weights meanwhile" if job.overlaps else ""
            lines.append(f"  {kind:20} {job.pack.name}, {len(sizes)} microbatches of up to "
                         f"{max(sizes)}: {text.size(peak.expected)}{early}")
    if prepared.runner.traffic.steps:
        traffic = attached.traffic()
        lines.append(f"between packs in a step: {text.size(traffic['direct'])} directly, "
                     f"{text.size(traffic['host'])} over the host")
    return "\n".join(lines)


_MODES = {"pp": "a layer is on one device at a time; results of a pack wait on the host, unless "
                "the next device has room",
          "dp": "every device computes all layers for its share of the samples; gradients are "
                "summed on the host"}
