"""Token merging in encoders: before each layer the most similar positions become one, their weighted mean.

    with token_merging.install(model.layers, per_layer=8, keep=1) as merging:
        model(pixels)
    merging.told(0).events()

The idea is that of ToMe (Bolya et al., 2023): positions are split into every other one and the rest, each of the first
has a most similar partner among the second, and the `per_layer` most similar pairs are merged. What is left keeps its
order. The layers must take any number of positions and no mask, as those of a vision transformer. Run with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from weighbridge.capture.adapters.adapter import Adapter, Installed
from weighbridge.capture.pruning import Merging
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.strategy import Strategy


class TokenMerging(Installed):
    """The layers of one encoder that merge.

    Attributes:
        strategy: how.
    """

    def __init__(self, layers: int, per_layer: int, keep: int) -> None:
        super().__init__(supported=True)
        self.strategy = Strategy(
            "TokenMerging", "merging", {"per_layer": per_layer, "keep": keep}, library="weighbridge", layers=layers
        )
        self._layers, self._per_layer, self._keep = layers, per_layer, keep
        self._universe = 0
        self._places: Any = None
        self._weights: Any = None
        self._merged: list[tuple[int, Any, Any]] = []

    def __enter__(self) -> TokenMerging:
        return self

    def told(self, row: int = 0) -> Merging:
        """What the last pass merged, of one row of the batch."""
        merged = tuple(
            (layer, dict(zip(sources[row].tolist(), targets[row].tolist(), strict=True)))
            for layer, sources, targets in self._merged
        )
        return Merging(self._layers, self._universe, merged, self.strategy)

    def merge(self, layer: int, hidden: Any) -> Any:
        """The positions (batch x positions x channels) that reach a layer.

        Returns:
            Fewer by `per_layer`, or by as many as there are partners for.
        """
        import torch  # noqa: PLC0415 - the host has it loaded

        batch, width, channels = hidden.shape
        if not layer:
            self._universe, self._merged = width, []
            self._places = torch.arange(width, device=hidden.device).expand(batch, width)
            self._weights = torch.ones(batch, width, 1, device=hidden.device, dtype=torch.float32)
        first = torch.arange(self._keep + (self._keep & 1), width, 2, device=hidden.device)
        second = torch.arange(self._keep + 1 - (self._keep & 1), width, 2, device=hidden.device)
        count = min(self._per_layer, len(first))
        if count <= 0 or not len(second):
            return hidden
        unit = torch.nn.functional.normalize(hidden.float(), dim=-1)
        best, partner = (unit[:, first] @ unit[:, second].transpose(1, 2)).max(-1)
        chosen = best.topk(count, dim=1).indices
        sources, targets = first[chosen], second[partner.gather(1, chosen)]
        weighted = hidden.float() * self._weights
        wide = targets[..., None].expand(-1, -1, channels)
        weighted = weighted.scatter_add(1, wide, weighted.gather(1, sources[..., None].expand(-1, -1, channels)))
        weights = self._weights.scatter_add(1, targets[..., None], self._weights.gather(1, sources[..., None]))
        stays = torch.ones(batch, width, dtype=torch.bool, device=hidden.device).scatter(1, sources, False)
        at = stays.nonzero()[:, 1].view(batch, width - count)
        self._merged.append((layer, self._places.gather(1, sources), self._places.gather(1, targets)))
        self._places = self._places.gather(1, at)
        self._weights = weights.gather(1, at[..., None])
        out = weighted.gather(1, at[..., None].expand(-1, -1, channels)) / self._weights
        return out.to(hidden.dtype)


def install(layers: Sequence[Any], *, per_layer: int, keep: int = 0) -> TokenMerging:
    """Merge before each layer until the answer is removed or its `with` block ends.

    Args:
        layers: modules that get (batch x positions x channels) first, in order.
        per_layer: positions to merge before each layer.
        keep: positions at the front that are never merged, such as a class token.

    Raises:
        ConfigError: nothing to merge is asked for, or there are no layers.
    """
    members = list(layers)
    if per_layer < 1 or keep < 0 or not members:
        raise ConfigError(
            f"per_layer={per_layer}, keep={keep}, {len(members)} layers; merge at least 1 in at least one"
        )
    merging = TokenMerging(len(members), per_layer, keep)
    for place, layer in enumerate(members):
        handle = layer.register_forward_pre_hook(_hook(merging, place), with_kwargs=True)
        merging.undo(handle.remove)
    return merging


def _hook(merging: TokenMerging, place: int) -> Any:
    def hook(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if args:
            return (merging.merge(place, args[0]), *args[1:]), kwargs
        return args, {**kwargs, "hidden_states": merging.merge(place, kwargs["hidden_states"])}

    return hook


ADAPTER: Final = Adapter(name="token_merging", framework="torch", first="2.13", below="2.14", install=install)
