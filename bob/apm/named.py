"""Find models by name: built-in models, derived models that bob ships, and models in files."""

from collections.abc import Sequence
from pathlib import Path

from bob.apm.builtin import SOFT, builtin, names
from bob.apm.model import Model, load, with_distinct_names
from bob.errors import UsageError, meant
from bob.resources import shipped

SHIPPED_MODELS = "osdi14-linux-6.1"  # models of the paper's configurations, on the kernel of the default image

EVERY = "all"


def model_names() -> list[str]:
    return list(dict.fromkeys([*names(), *_shipped_models()]))


def named_model(name: str) -> Model:
    """Return the model ``name``: a built-in model, or else the model in the file with this path, or else a shipped
    model. Raises UsageError if there is no such model."""
    if name in (*names(), SOFT):
        return builtin(name)
    if Path(name).is_file():
        return load(Path(name))
    derived = _shipped_models()
    if name in derived:
        return load(derived[name])
    hint = meant(name, model_names(), "name a file of `bob apm derive`, or one of")
    raise UsageError(f"unknown model {name!r}", hint=hint)


def named_models(wanted: Sequence[str]) -> list[Model]:
    """Return the models with these names, each model once. The name :data:`EVERY` stands for all built-in and shipped
    models. If several models have the same name, the origin of each model is added to its name. ``wanted`` has the
    names."""
    found: list[Model] = []
    for name in dict.fromkeys(wanted):
        if name == EVERY:
            found += [*map(builtin, names()), *map(load, _shipped_models().values())]
        else:
            found.append(named_model(name))
    return with_distinct_names(found)


def _shipped_models() -> dict[str, Path]:
    folder = shipped("reports/models") / SHIPPED_MODELS
    return {path.stem: path for path in sorted(folder.glob("*.json"))}
