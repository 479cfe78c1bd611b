"""What the objects of the Hugging Face libraries were given, as rules ask for it."""

from __future__ import annotations

from lightlint.models.names.huggingface import ARGUMENTS
from lightlint.values.core import Bound, Class, Function, Partial, Unknown, Value, is_constant, text_of, written
from lightlint.values.training import Instance, Module

FALSY = (False, None, "no", "")


def setting(settings: Instance | None, *names: str) -> Value | None:
    """What TrainingArguments or another object was given under one of some names: None for the default, else perhaps unknown."""
    if settings is None:
        return Unknown()
    for name in names:
        found = settings.attributes.get(name) or settings.arguments.get(name)
        if found is not None:
            return found
    return Unknown() if settings.open_arguments or settings.escaped else None


def is_on(value: Value | None) -> bool:
    """Whether a setting is surely on: by the program, or by the default of an option."""
    found = written(value)
    return found is not None and bool(found.value) and found.value not in FALSY


def is_off(value: Value | None) -> bool:
    """Whether a setting is surely off, which it is by default."""
    found = written(value)
    return value is None or (found is not None and (not found.value or found.value in FALSY))


def loaded_as(held: Instance) -> Value | None:
    """Under which name a model or a tokenizer was loaded."""
    return held.argument("pretrained_model_name_or_path", 0)


def name_of(held: Instance) -> str | None:
    """That name, or the default of the option that says it; None where it is unknown."""
    found = written(loaded_as(held))
    return str(found.value) if found is not None else None


def dtype_of(model: Module) -> str | None:
    """The dtype that a pretrained model was loaded with: "float16", "float32" by default, None where it is unknown."""
    asked = [model.arguments[name] for name in ("dtype", "torch_dtype") if name in model.arguments]
    if model.open_arguments or model.escaped or "#dtype" in model.attributes:
        return text_of(model.attributes.get("#dtype"))
    if not asked:
        return None
    name = text_of(asked[0])
    return name.rpartition(".")[2].replace("half", "float16") if name is not None else None


def is_quantized(model: Module) -> bool:
    """Whether a pretrained model was loaded with integers for weights, or may be."""
    names = ("quantization_config", "load_in_8bit", "load_in_4bit")
    given = [each for name in names if (each := model.arguments.get(name)) is not None]
    return any(not is_constant(each, False, None) for each in given)


def base_of(model: Value | None) -> Module | None:
    """The model inside of the adapters that were put around it."""
    return model.unwrapped() if isinstance(model, Module) else None


def has_adapter(model: Module) -> bool:
    """Whether an adapter was put around a model."""
    return model.wrapper == "adapter"


def is_own(value: Value | None) -> bool:
    """Whether something that is called is a function, or an object, of the program."""
    own = isinstance(value, Instance) and isinstance(value.cls, Class) and value.cls.find("__call__") is not None
    return own or isinstance(value, (Function, Bound, Partial))


def problem_of(model: Module) -> str | None:
    """The `problem_type` that a model for texts was told, itself or in its configuration; None where it was told none."""
    configs = (model.arguments.get("config"), model.attributes.get("config"))
    held = [each.attributes.get("problem_type") for each in configs if isinstance(each, Instance)]
    return next((text for each in (*held, model.arguments.get("problem_type")) if (text := text_of(each))), None)


def model_of(trainer: Instance) -> Value | None:
    """The model that a Trainer was given."""
    return trainer.attributes.get("model") or trainer.argument("model", 0)


def settings_of(trainer: Instance) -> Instance | None:
    """Its TrainingArguments, None where they are out of sight."""
    given = trainer.attributes.get("args") or trainer.arguments.get("args")
    if given is None:
        held = trainer.arguments.values()
        given = next((each for each in held if isinstance(each, Instance) and each.kind == ARGUMENTS), None)
    return given if isinstance(given, Instance) and given.kind == ARGUMENTS else None


def replaces(trainer: Instance, *names: str) -> bool:
    """Whether a class of the program has methods of its own in the place of some of the Trainer's."""
    return isinstance(trainer.cls, Class) and any(trainer.cls.find(name) is not None for name in names)


def name_of_collator(collator: Value | None) -> str:
    """The name of a collator's class, or of the function that it is; empty for one without."""
    return collator.name if isinstance(collator, Instance) else getattr(collator, "last", "")
