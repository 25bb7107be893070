"""What stands in place of a method of one instance."""

from __future__ import annotations

import functools
from typing import Any


class Method:
    """Base of what is put over a method of a model. Copies and pickles of the model get their own, plain method."""

    def __init__(self, model: Any, name: str) -> None:
        self.model = model
        self.name = name
        self.original = getattr(model, name)
        wrapper: Any = self  # a subclass is what is called
        functools.update_wrapper(wrapper, self.original)

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self.model, self.name)
