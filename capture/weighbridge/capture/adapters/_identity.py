"""Which model it is: a fingerprint of its configuration, its parameters' shapes, and a sample of their values."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

_SAMPLE: Final = 16
# Where a model lies and who wrote the file says nothing about what it is, and paths are nobody's business.
_PASSING: Final = ("_name_or_path", "transformers_version", "name_or_path")


def model_fingerprint(model: Any) -> str:
    """SHA-256 that is the same for equal weights in every process. Reads up to 16 values of each parameter."""
    digest = hashlib.sha256()
    config = {name: value for name, value in model.config.to_dict().items() if name not in _PASSING}
    digest.update(json.dumps(config, sort_keys=True, default=str).encode())
    for name, parameter in sorted(model.named_parameters(), key=lambda pair: str(pair[0])):
        digest.update(f"{name} {tuple(parameter.shape)} {parameter.dtype}".encode())
        if parameter.device.type == "meta" or not parameter.numel():
            continue
        values = parameter.detach().reshape(-1)[:: max(1, parameter.numel() // _SAMPLE)][:_SAMPLE]
        digest.update(values.double().cpu().numpy().tobytes())
    return digest.hexdigest()
