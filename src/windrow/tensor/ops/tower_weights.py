"""The weights of a residual tower, packed in the order in which the fused kernel reads them.

Packing is a gather: every entry of the packed tensors has a place in the network's own weights, or is zero. The places
are computed once. A `refresh` then needs only a few kernels, works in place, and can be captured in a CUDA graph. It
also folds batch norm, if there is any.

    network's tensors  --cat-->  flat [1 + W]  --gather-->  packed bf16 weights, packed f32 biases
                                 (0 first, for the padding)

Everything is padded with zeros to the kernel's sizes: 16 planes, 64 channels, 64 hidden units, 8 planes of both heads
together, boards of 8 x 8, actions to a multiple of 64.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from windrow.errors import EvaluatorError
from windrow.nets.resnet import Layer, ResNet

MAX_ROWS, MAX_COLUMNS = 8, 8
"""Largest board. The registers of a warpgroup hold at most four rows, and a product is eight cells wide."""
MAX_PLANES = 16
WIDTH = 64
"""Number of channels of the kernel, and of hidden units of its value head."""
MAX_HEAD_PLANES = 8
_PAST_THE_END = 3
"""Number of taps that the kernel loads ahead, beyond the last layer."""
_ORDER = [3, 4, 5, 0, 1, 2, 6, 7, 8]
"""Order of the taps of a 3x3 layer in the kernel: the same row, the row above, the row below."""


@dataclass(frozen=True, slots=True)
class TowerShape:
    """The sizes of a tower."""

    planes: int
    rows: int
    columns: int
    blocks: int
    policy_planes: int
    value_planes: int
    num_actions: int

    @property
    def num_tiles(self) -> int:
        """Number of products with 64 outputs that the policy needs for all actions."""
        return -(-self.num_actions // WIDTH)

    @property
    def stride(self) -> int:
        """Distance in cells from one board row to the next, with an empty cell between them."""
        return max(8, self.columns + 1)


@dataclass(frozen=True, slots=True)
class TowerWeights:
    """A packed tower. Weights are bfloat16 for the kernel; `tower_torch.py` also takes float32.

    stem: [9, 64, 16] in fragments.
    layers: [2 * blocks * 9 + 3, 64, 64] in fragments, the last three zero.
    biases: [2 * blocks + 1, 64] float32: stem first.
    head: [8, 64]: the 1x1 layers, policy planes first.
    head_bias: [8] float32.
    linear: [tiles * policy planes + value planes, 64, 64] in fragments: from a plane's 8 x 8 cells to 64 outputs.
    linear_bias: [tiles * 64 + 192] float32: the biases of the policy and of the hidden layer, the weights of the value,
        and its bias.
    """

    shape: TowerShape
    stem: Tensor
    layers: Tensor
    biases: Tensor
    head: Tensor
    head_bias: Tensor
    linear: Tensor
    linear_bias: Tensor


class PackedTower:
    """The packed weights of a network, which `refresh` updates in place.

    Args:
        network: a tower for which `why_not_packed` returns None. The packed weights are on its device.
        dtype: type of the packed weights.
    """

    def __init__(self, network: ResNet, dtype: torch.dtype = torch.bfloat16) -> None:
        if (reason := why_not_packed(network)) is not None:
            raise EvaluatorError(f"this network does not fit into one kernel: {reason}")
        device = next(network.parameters()).device
        shape = _shape_of(network)
        places = _Places(network)
        self._sources = places.views
        weights = _pack_weights(network, shape, places.weight)
        gains = _pack_weights(network, shape, places.gain)
        biases = _pack_biases(network, shape, places.bias)
        means = _pack_biases(network, shape, places.mean)
        bias_gains = _pack_biases(network, shape, places.bias_gain)
        source_dtype = self._sources[0].dtype
        self._flat = torch.zeros(1 + places.count, dtype=source_dtype, device=device)
        self._weights = torch.zeros(sum(part.numel() for part in weights), dtype=dtype, device=device)
        self._biases = torch.zeros(sum(part.numel() for part in biases), dtype=torch.float32, device=device)

        def table(parts: Iterable[Tensor]) -> Tensor:
            return torch.cat([part.flatten() for part in parts]).to(device, torch.int32)

        self._weight_places, self._bias_places = table(weights), table(biases)
        self._norms: _Norms | None = None
        if places.norms:
            numbers = torch.cat([torch.stack(norm) for norm in places.norms], 1).to(device, torch.int32)
            self._norms = _Norms(
                gamma=numbers[0],
                variance=numbers[1],
                epsilon=torch.tensor(places.epsilons, device=device),
                gains=torch.ones(1 + numbers.shape[1], device=device),
                weight_gains=table(gains),
                means=table(means),
                bias_gains=table(bias_gains),
            )
        stem, layers, head, linear = _views(self._weights, weights)
        bias, head_bias, linear_bias = _views(self._biases, biases)
        self.weights = TowerWeights(shape, stem, layers, bias, head, head_bias, linear, linear_bias)
        """The packed weights, as `evaluate` takes them."""
        self.refresh()

    @torch.no_grad()
    def refresh(self) -> None:
        """Copy the network's current weights. Does not wait for the device."""
        torch.cat(self._sources, out=self._flat[1:])
        weights = self._flat.index_select(0, self._weight_places)
        biases = self._flat.index_select(0, self._bias_places).float()
        if (norms := self._norms) is not None:
            flat = self._flat.float()
            spread = torch.rsqrt(flat.index_select(0, norms.variance) + norms.epsilon)
            torch.mul(flat.index_select(0, norms.gamma), spread, out=norms.gains[1:])
            weights = weights * norms.gains.index_select(0, norms.weight_gains)
            biases -= flat.index_select(0, norms.means) * norms.gains.index_select(0, norms.bias_gains)
        self._weights.copy_(weights)
        self._biases.copy_(biases)


@dataclass(frozen=True, slots=True)
class _Norms:
    """Places of batch norm's tensors in the flat weights, and the factor of each channel computed from them."""

    gamma: Tensor
    variance: Tensor
    epsilon: Tensor
    gains: Tensor  # [1 + channels of all layers] float32; the first is 1, for weights without norm
    weight_gains: Tensor
    means: Tensor
    bias_gains: Tensor


def check_call(weights: TowerWeights, observations: Tensor, logits: Tensor, values: Tensor) -> None:
    """Assert the sizes, types and devices that `evaluate` relies on."""
    shape, num_boards = weights.shape, len(observations)
    assert observations.shape[1:] == (shape.planes, shape.rows, shape.columns) and observations.is_floating_point()
    assert logits.shape == (num_boards, shape.num_actions) and values.shape == (num_boards,)
    assert logits.dtype == values.dtype == torch.float32 and logits.is_contiguous() and values.is_contiguous()
    assert len({tensor.device for tensor in (weights.layers, observations, logits, values)}) == 1
    assert max(observations.numel(), logits.numel()) < 2**31  # the kernel counts in 32 bits


def why_not_packed(network: object) -> str | None:
    """Return why the fused kernel cannot evaluate this network, as a clause; None if it can."""
    if not isinstance(network, ResNet):
        return f"it is a {type(network).__name__}, and the kernel supports only windrow.nets.ResNet"
    spec = network.spec
    observation = spec["observation"]
    if isinstance(observation, dict) or len(observation) != 3:
        return "its observation is not a single board"
    planes, rows, columns = observation
    if not (2 <= rows <= MAX_ROWS and 2 <= columns <= MAX_COLUMNS):
        return f"its board is {rows}x{columns}, and the kernel supports 2x2 to {MAX_ROWS}x{MAX_COLUMNS}"
    if spec["blocks"] < 1:
        return "it has no residual blocks"
    if spec["num_values"] != 1:
        return f"it returns {spec['num_values']} values, and the kernel supports one"
    for name, size, most in (
        ("planes", planes, MAX_PLANES),
        ("channels", spec["channels"], WIDTH),
        ("planes of policy and value", spec["policy_channels"] + spec["value_channels"], MAX_HEAD_PLANES),
        ("hidden units of the value", spec["value_hidden"], WIDTH),
    ):
        if size > most:
            return f"it has {size} {name}, and the kernel supports at most {most}"
    return None


# --- Where everything is ----------------------------------------------------------------------------------------------


class _Places:
    """The place of every weight in the flat tensor, from 1 on. Place 0 holds a zero."""

    def __init__(self, network: ResNet) -> None:
        self.views: list[Tensor] = []
        """The network's tensors in the order of their memory."""
        self.count = 0
        self.norms: list[tuple[Tensor, Tensor]] = []
        self.epsilons: list[float] = []
        self._places: dict[Tensor, Tensor] = {}
        self._gains: dict[Tensor, Tensor] = {}
        self._num_gains = 0
        for layer in _layers_of(network):
            norm = layer.norm
            self._add(layer.conv.weight)
            if norm is None:
                self._add(_bias_of(layer))
                continue
            mean, variance = cast("Tensor", norm.running_mean), cast("Tensor", norm.running_var)
            for tensor in (norm.weight, norm.bias, mean, variance):
                self._add(tensor)
            self.norms.append((self._places[norm.weight], self._places[variance]))
            self.epsilons += [norm.eps] * len(mean)
            first = 1 + self._num_gains
            self._gains[layer.conv.weight] = torch.arange(first, first + len(mean))
            self._num_gains += len(mean)
        for linear in (network.policy, network.value_hidden, network.value):
            self._add(linear.weight)
            self._add(linear.bias)

    def weight(self, tensor: Tensor) -> Tensor:
        """Return the place of each entry of a weight, in the shape of the weight."""
        return self._places[tensor]

    def gain(self, tensor: Tensor) -> Tensor:
        """Return the index of each entry's norm factor; 0 if the layer has no norm."""
        found = self._gains.get(tensor)
        if found is None:
            return torch.zeros(tensor.shape, dtype=torch.int64)
        return found.view(-1, *[1] * (tensor.dim() - 1)).expand(tensor.shape)

    def bias(self, layer: Layer | Tensor) -> Tensor:
        """Return the places of a layer's bias; with a norm, the mean must still be subtracted."""
        if isinstance(layer, Tensor):
            return self._places[layer]
        return self._places[_bias_of(layer) if layer.norm is None else layer.norm.bias]

    def mean(self, layer: Layer | Tensor) -> Tensor:
        """Return the places of the norm's mean; 0 if the layer has no norm."""
        if isinstance(layer, Tensor) or layer.norm is None:
            return torch.zeros_like(self.bias(layer))
        return self._places[cast("Tensor", layer.norm.running_mean)]

    def bias_gain(self, layer: Layer | Tensor) -> Tensor:
        """Return the indices of the norm factors of the mean; 0 if the layer has no norm."""
        if isinstance(layer, Tensor) or layer.norm is None:
            return torch.zeros_like(self.bias(layer))
        return self._gains[layer.conv.weight]

    def _add(self, tensor: Tensor) -> None:
        """Append a tensor in the order of its memory, so that it is read without a copy in any memory format."""
        order = sorted(range(tensor.dim()), key=lambda dim: -tensor.stride(dim) if tensor.shape[dim] > 1 else 0)
        view = tensor.detach().permute(order)
        if not view.is_contiguous():
            raise EvaluatorError("the weights of this network are parts of other tensors: copy the network first")
        places = torch.arange(1 + self.count, 1 + self.count + tensor.numel()).view(view.shape)
        self._places[tensor] = places.permute([order.index(dim) for dim in range(tensor.dim())])
        self.views.append(view.reshape(-1))
        self.count += tensor.numel()


def _layers_of(network: ResNet) -> Iterator[Layer]:
    yield network.stem
    for block in network.blocks:
        yield cast("Layer", block.first)
        yield cast("Layer", block.second)
    yield network.policy_planes
    yield network.value_planes


def _bias_of(layer: Layer) -> Tensor:
    assert layer.conv.bias is not None
    return layer.conv.bias


def _shape_of(network: ResNet) -> TowerShape:
    spec = network.spec
    planes, rows, columns = spec["observation"]
    heads = spec["policy_channels"], spec["value_channels"]
    return TowerShape(planes, rows, columns, spec["blocks"], *heads, spec["num_actions"])


# --- The order --------------------------------------------------------------------------------------------------------


def _pack_weights(network: ResNet, shape: TowerShape, of: Any) -> list[Tensor]:
    """Pack what `of` returns for each weight tensor as [stem, layers, head, linear], in the kernel's order."""
    stem, *layers, policy_planes, value_planes = (of(layer.conv.weight) for layer in _layers_of(network))
    taps = torch.cat([_pad(_taps(layer), 9, WIDTH, WIDTH) for layer in layers])
    head = torch.cat([policy_planes.flatten(1), value_planes.flatten(1)])
    cells = shape.rows, shape.columns
    policy = of(network.policy.weight).unflatten(1, (shape.policy_planes, *cells))
    hidden = of(network.value_hidden.weight).unflatten(1, (shape.value_planes, *cells))
    policy = _pad(policy, shape.num_tiles * WIDTH, shape.policy_planes, 8, 8)
    hidden = _pad(hidden, WIDTH, shape.value_planes, 8, 8)
    # [tile, plane, output, cell]
    by_plane = policy.view(shape.num_tiles, WIDTH, shape.policy_planes, 64).transpose(1, 2).flatten(0, 1)
    linear = torch.cat([by_plane, hidden.view(WIDTH, shape.value_planes, 64).transpose(0, 1)])
    return [
        to_fragments(_pad(_taps(stem), 9, WIDTH, MAX_PLANES)),
        to_fragments(_pad(taps, len(taps) + _PAST_THE_END, WIDTH, WIDTH)),
        _pad(head, MAX_HEAD_PLANES, WIDTH),
        to_fragments(linear),
    ]


def _pack_biases(network: ResNet, shape: TowerShape, of: Any) -> list[Tensor]:
    """Pack what `of` returns for each layer or vector as [biases, head_bias, linear_bias]."""
    *layers, policy_planes, value_planes = (of(layer) for layer in _layers_of(network))
    linear = [
        _pad(of(network.policy.bias), shape.num_tiles * WIDTH),
        _pad(of(network.value_hidden.bias), WIDTH),
        _pad(of(network.value.weight)[0], WIDTH),
        _pad(of(network.value.bias), WIDTH),
    ]
    biases = torch.stack([_pad(layer, WIDTH) for layer in layers])
    return [biases, _pad(torch.cat([policy_planes, value_planes]), MAX_HEAD_PLANES), torch.cat(linear)]


def _taps(weight: Tensor) -> Tensor:
    """Convert a weight [outputs, inputs, 3, 3] to [9, outputs, inputs], in the kernel's order."""
    return weight.permute(2, 3, 0, 1).flatten(0, 1)[_ORDER]


def _pad(tensor: Tensor, *sizes: int) -> Tensor:
    """Pad a tensor with zeros at the end of each dimension."""
    padded = tensor.new_zeros(sizes)
    padded[tuple(slice(size) for size in tensor.shape)] = tensor
    return padded


def to_fragments(matrices: Tensor) -> Tensor:
    """Reorder matrices [..., 64, K] as the threads of a warpgroup load operand A of wgmma, 16 bytes per lane.

    A row is (warp, half, row of eight), and a column is (step of 16, half, lane of four, element of two). A lane holds
    all entries with its row of eight and its lane of four.
    """
    depth, lead = matrices.shape[-1], matrices.dim() - 2
    split = matrices.reshape(*matrices.shape[:-2], 4, 2, 8, depth // 16, 2, 4, 2)
    order = [lead + dim for dim in (3, 0, 2, 5, 4, 1, 6)]
    return split.permute(*range(lead), *order).reshape(matrices.shape).contiguous()


def from_fragments(packed: Tensor) -> Tensor:
    """Invert `to_fragments`."""
    depth, lead = packed.shape[-1], packed.dim() - 2
    split = packed.reshape(*packed.shape[:-2], depth // 16, 4, 8, 4, 2, 2, 2)
    order = [lead + dim for dim in (1, 5, 2, 0, 4, 3, 6)]
    return split.permute(*range(lead), *order).reshape(packed.shape)


def _views(memory: Tensor, parts: list[Tensor]) -> list[Tensor]:
    """Split memory into consecutive views with the shapes of `parts`."""
    found: list[Tensor] = []
    first = 0
    for part in parts:
        found.append(memory[first : first + part.numel()].view(part.shape))
        first += part.numel()
    return found
