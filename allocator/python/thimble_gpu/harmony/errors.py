"""What Harmony says when it cannot train a model."""


class HarmonyError(RuntimeError):
    """A model, a setting or a machine that Harmony refuses. Nothing was changed."""
