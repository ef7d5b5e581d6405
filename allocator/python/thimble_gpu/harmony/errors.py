"""The error that Harmony raises."""


class HarmonyError(RuntimeError):
    """Harmony refuses a model, a setting or a machine. Nothing has changed."""
