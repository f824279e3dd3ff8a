"""A whole residual tower in one kernel, for Hopper GPUs: the function of `tower_torch.py`, with the same signature.

A program evaluates eight boards from the first layer to the answers. Their activations stay in the shared memory of
one multiprocessor, and weights are loaded from the L2 cache into registers. Only logits and values are written to
memory, so a tower of any depth is one launch.

    shared memory of a program (6x7: 123 KiB, 8x8: 177 KiB)

      buffer 0  [cell][board 0..7][64 channels] bf16      input of a block, and what is added to its output
      buffer 1  [cell][board 0..7][64 channels] bf16      output of a block's first layer
      input     [cell][board 0..7][16 planes] bf16        what the first layer reads
      planes    [plane 0..7][board 0..7][64 cells] bf16   what the linear layers of the heads read
      head      2 x [8 planes][64 channels] bf16          weights of the heads' 1x1 layers, a copy for each group

      cells of a buffer, here of a board of 3 x 7; "." is empty, which is zero:

         0 .    1 a1   2 b1   3 c1  ...  7 g1   8 .       the empty cell behind a row is also the one before the next,
                9 a2  10 b2  11 c2  ... 15 g2  16 .       and cell 0 stands before the first
               17 a3  18 b3  19 c3  ... 23 g3  24 .

A cell is 8 boards x 128 bytes: eight rows, exactly one atom of the 128-byte swizzle that the tensor cores read with.
Shifting a whole row of cells therefore only changes its address; the swizzle stays the same. Each of the nine taps of a
3x3 layer is one matrix product at a shifted address, without masks and copies. The empty cells at both ends of a row
must be zero; products above and below the board are skipped. Eight columns are a tile of eight cells with the empty
cell beside it (nine cells a row). With fewer columns the empty cells are within the tile, and every layer writes zeros
there.

    outputs^T [64 channels, 8 cells x 8 boards]  +=  weights [64, 64] of a tap  x  cells^T [64, 8 cells x 8 boards]
    accumulators, registers of a warpgroup           registers                     shared memory

Two warpgroups share the rows of the board; group 0 has the upper ones. Each group needs one row of the other group's
previous layer and waits for it only before the last three of its nine taps. An mbarrier counts by parity: a wait for
arrival k must begin before arrival k + 1. So each group has two barriers, at which it arrives in turn after each layer,
and waits for the other group's last layer before it arrives for its heads. A group overwrites in layer k what the other
has read in layer k - 1; it has waited for the other's layer k - 1 before.

Pitfalls:

- If registers run short, ptxas serializes all products, and only `ptxas -v` reports it ("serialized wgmma"). At most
  four rows per group fit, which 8x8 needs; `tests/gpu` checks the number of spilled registers.
- The addresses of all taps are known at compile time. If the compiler uses that, it computes their descriptors before
  the loop over the blocks and runs out of registers to keep them in. `_hidden_zero` prevents this.
- Tensor cores access shared memory asynchronously: `fence_async_shared` must stand between a store and a barrier.
- Shared memory initially holds data of the last kernel, possibly NaN. Since 0 x NaN is NaN, empty cells and unused
  planes are cleared. `tests/gpu` fills the memory with NaN first.
- The batch size and the strides must not be specialized. Otherwise every batch size that is not a multiple of 16 takes
  seconds to compile.
"""

# Kernels are written in Triton's language, whose types pyright cannot check.
# In Gluon a tuple grows by addition, and an unrolled loop needs its variable.
# ruff: noqa: RUF005, B007
# pyright: basic, reportMissingImports=false, reportIndexIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from windrow.tensor.ops.tower_weights import TowerWeights, check_call

BOARDS = 8
"""Boards per program: eight rows of 128 bytes are one atom of the swizzle."""
NUM_REGISTERS = 240
"""Registers per thread of both warpgroups: 256 threads share 65,536, and the warps that start them need a few."""

_NB = gl.constexpr(BOARDS)
_TILE = gl.constexpr(8 * BOARDS)  # columns of a product: eight cells of all boards
_TAP = gl.constexpr(64 * 64)
_STEM_TAP = gl.constexpr(64 * 16)
_REGISTERS = gl.constexpr(NUM_REGISTERS)


# --- Weights: global memory to registers ------------------------------------------------------------------------------


@gluon.jit
def _load_tap(weights, tap, MMA: gl.constexpr):
    """Load a [64, 64] matrix of packed weights as operand A of a product: four loads of 16 bytes per thread."""
    FLAT: gl.constexpr = gl.DistributedLinearLayout(
        [[1], [2], [4], [1024], [2048]], [[8], [16], [32], [64], [128]], [[256], [512]], [], [_TAP]
    )
    flat = gl.load(weights + tap * _TAP + gl.arange(0, _TAP, FLAT)).reshape([4, 4, 8, 4, 2, 2, 2])
    # The values are already where the operand needs them. Only the layout's name changes, as assert_trivial asserts.
    matrix = flat.permute([1, 5, 2, 0, 4, 3, 6]).reshape([64, 64])
    return gl.convert_layout(matrix, gl.DotOperandLayout(0, MMA, 2), assert_trivial=True)


@gluon.jit
def _load_stem_tap(weights, tap, MMA: gl.constexpr):
    """Load a [64, 16] matrix of packed weights in the same way."""
    FLAT: gl.constexpr = gl.DistributedLinearLayout(
        [[1], [2], [4]], [[8], [16], [32], [64], [128]], [[256], [512]], [], [_STEM_TAP]
    )
    flat = gl.load(weights + tap * _STEM_TAP + gl.arange(0, _STEM_TAP, FLAT)).reshape([4, 8, 4, 2, 2, 2])
    matrix = flat.permute([0, 4, 1, 3, 2, 5]).reshape([64, 16])
    return gl.convert_layout(matrix, gl.DotOperandLayout(0, MMA, 2), assert_trivial=True)


# --- Cells: shared memory ---------------------------------------------------------------------------------------------


@gluon.jit
def _tile(cells, first):
    """Return eight cells of all boards, from cell `first` on: [8 * boards, 64 channels]."""
    return cells.index(first)._reinterpret(gl.bfloat16, [_TILE, 64], gl.NVMMASharedLayout(128, 16, 2))


@gluon.jit
def _input_tile(cells, first):
    """Return eight cells of the input, from cell `first` on: [8 * boards, 16 planes]."""
    return cells.index(first)._reinterpret(gl.bfloat16, [_TILE, 16], gl.NVMMASharedLayout(32, 16, 2))


@gluon.jit
def _hidden_zero():
    """Return a zero that the compiler does not know to be constant; see the pitfalls above."""
    return gl.inline_asm_elementwise(
        "mov.u32 $0, %ctaid.z;", "=r,r", [gl.program_id(1)], dtype=gl.int32, is_pure=False, pack=1
    )


@gluon.jit
def _multiply(
    products, w, cells, first, DY: gl.constexpr, DX: gl.constexpr, IS_FIRST: gl.constexpr, IS_INPUT: gl.constexpr,
    ROWS: gl.constexpr, STRIDE: gl.constexpr, Y: gl.constexpr, N: gl.constexpr,
):  # fmt: skip
    """Begin `products += w x neighbours^T` for one tap of N board rows from Y on; skip rows outside the board."""
    grown = ()
    for r in gl.static_range(N):
        product = products[r]
        if Y + r + DY >= 0 and Y + r + DY < ROWS:
            at = first + 1 + (Y + r + DY) * STRIDE + DX
            if IS_INPUT:
                product = warpgroup_mma(
                    w, _input_tile(cells, at).permute((1, 0)), product, use_acc=not IS_FIRST, is_async=True
                )
            else:
                product = warpgroup_mma(
                    w, _tile(cells, at).permute((1, 0)), product, use_acc=not IS_FIRST, is_async=True
                )
        grown = grown + (product,)
    return grown


@gluon.jit
def _finish(target, product, residual, bias, ADDS: gl.constexpr, COLUMNS: gl.constexpr, MMA: gl.constexpr):
    """Add bias and residual to one board row, apply ReLU, round, and store transposed; empty cells become zero."""
    total = product + bias
    if ADDS:
        total += residual.to(gl.float32)
    if COLUMNS < 8:
        place = gl.arange(0, _TILE, gl.SliceLayout(0, MMA))[None, :]
        total = gl.where(place < COLUMNS * _NB, total, 0.0)
    target.store(
        gl.inline_asm_elementwise(
            "cvt.rn.relu.bf16x2.f32 $0, $2, $1;", "=r,r,r", [total], dtype=gl.bfloat16, is_pure=True, pack=2
        )
    )


# --- Layers -----------------------------------------------------------------------------------------------------------


@gluon.jit
def _layer(
    cells, done, odd: gl.constexpr, phase, SOURCE: gl.constexpr, TARGET: gl.constexpr, w0, w1, w2, weights, biases,
    ADDS: gl.constexpr, MMA: gl.constexpr, ROWS: gl.constexpr, COLUMNS: gl.constexpr, STRIDE: gl.constexpr,
    Y: gl.constexpr, N: gl.constexpr, G: gl.constexpr,
):  # fmt: skip
    """Compute a 3x3 layer for group G, whose N board rows begin at Y; return the next layer's first three taps.

    Order of the taps: the same row, the row away from the other group, the row towards it. Before the last, the group
    waits for the other's previous layer. Weights are loaded three taps ahead.
    """
    zeros = gl.zeros([64, _TILE], gl.float32, MMA)
    products = ()
    for r in gl.static_range(N):
        products = products + (zeros,)
    bias = gl.load(biases + gl.arange(0, 64, gl.SliceLayout(1, MMA)))[:, None]
    last = w0
    for t in gl.static_range(9):
        if t == 6:
            mbarrier.wait(done.index(2 * (1 - G) + odd), phase)
        products = _multiply(
            products, w0, cells, SOURCE + _hidden_zero(), 0 if t < 3 else (2 * G - 1 if t < 6 else 1 - 2 * G),
            t % 3 - 1, t == 0, False, ROWS, STRIDE, Y, N,
        )  # fmt: skip
        if t > 0:
            # Wait for the previous tap, to free its registers. This tap has no product for a row beyond the board.
            warpgroup_mma_wait(N - 1 if t >= 3 and t < 6 else N, deps=[last])
        last = w0
        w0 = w1
        w1 = w2
        # The packed order is the same row, the row above, the row below. Group 1 swaps the last two.
        w2 = _load_tap(weights, t + 3 if (G == 0 or t > 5) else (t + 6 if t < 3 else t), MMA)
    residuals = ()
    for r in gl.static_range(N):
        if ADDS:  # read while the last products are under way
            residuals = residuals + (_tile(cells, TARGET + 1 + (Y + r) * STRIDE).permute((1, 0)).load(MMA),)
        else:
            residuals = residuals + (bias,)
    products = warpgroup_mma_wait(0, deps=products + (last,))
    for r in gl.static_range(N):
        target = _tile(cells, TARGET + 1 + (Y + r) * STRIDE).permute((1, 0))
        _finish(target, products[r], residuals[r], bias, ADDS, COLUMNS, MMA)
    fence_async_shared()
    mbarrier.arrive(done.index(2 * G + (1 - odd)), count=1)
    return w0, w1, w2


@gluon.jit
def _group(
    cells, inputs, planes, heads, done, shown, stem, layers, biases, head, head_bias, linear, linear_bias, logits,
    values, first_board, num_boards, plane_stride, cell_stride,
    BLOCKS: gl.constexpr, PLANES: gl.constexpr, ROWS: gl.constexpr, COLUMNS: gl.constexpr, STRIDE: gl.constexpr,
    BUFFER: gl.constexpr, POLICY: gl.constexpr, VALUE: gl.constexpr, ACTIONS: gl.constexpr, TILES: gl.constexpr,
    Y: gl.constexpr, N: gl.constexpr, G: gl.constexpr,
):  # fmt: skip
    """Compute the whole network for the N board rows from Y on.

    Arrival k of a group (0: the input, 1: the stem, from 2 on: the layers, then the heads' planes) is at its barrier
    k % 2.
    """
    M16: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, _TILE, 16])
    BY_PLANE: gl.constexpr = gl.BlockedLayout([1, 8], [16, 2], [4, 1], [1, 0])
    BY_CHANNEL: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    w0 = _load_tap(layers, 0, M16)
    w1 = _load_tap(layers, 1, M16)
    w2 = _load_tap(layers, 2, M16)

    # Empty cells beside the rows of this group. The two groups share one, and both write zeros.
    ws = _load_stem_tap(stem, 0, M16)
    none = gl.zeros([_NB, 64], gl.bfloat16, BY_CHANNEL)
    for r in gl.static_range(N + 1):
        cells.index((Y + r) * STRIDE).store(none)
        cells.index(BUFFER + (Y + r) * STRIDE).store(none)
        if STRIDE > 8 or Y + r == 0:
            inputs.index((Y + r) * STRIDE).store(gl.zeros([_NB, 16], gl.bfloat16, BY_PLANE))

    # The input, and the weights of the heads.
    row = gl.arange(0, _TILE, gl.SliceLayout(1, BY_PLANE))[:, None]
    plane = gl.arange(0, 16, gl.SliceLayout(0, BY_PLANE))[None, :]
    board, column = first_board + row % _NB, row // _NB
    is_there = (plane < PLANES) & (column < COLUMNS) & (board < num_boards)
    for r in gl.static_range(N):
        place = board * (PLANES * ROWS * COLUMNS) + plane * plane_stride + ((Y + r) * COLUMNS + column) * cell_stride
        loaded = gl.load(shown + place, mask=is_there, other=0.0).to(gl.bfloat16)
        _input_tile(inputs, 1 + (Y + r) * STRIDE).store(loaded)
    p = gl.arange(0, 8, gl.SliceLayout(1, BY_CHANNEL))[:, None]
    c = gl.arange(0, 64, gl.SliceLayout(0, BY_CHANNEL))[None, :]
    heads.index(G).store(gl.load(head + p * 64 + c))
    flat_planes = planes._reinterpret(gl.bfloat16, [8 * _NB, 64], gl.NVMMASharedLayout(128, 16, 2))
    BY_CELL: gl.constexpr = gl.BlockedLayout([1, 8], [32, 1], [4, 1], [1, 0])
    for y in gl.static_range(8 - ROWS):  # the planes have eight rows
        if y % 2 == G:
            flat_planes.slice((ROWS + y) * 8, 8, dim=1).store(gl.zeros([8 * _NB, 8], gl.bfloat16, BY_CELL))
    fence_async_shared()
    mbarrier.arrive(done.index(2 * G), count=1)
    mbarrier.wait(done.index(2 * (1 - G)), 0)

    # The stem: sixteen planes deep.
    zeros = gl.zeros([64, _TILE], gl.float32, M16)
    products = ()
    for r in gl.static_range(N):
        products = products + (zeros,)
    for t in gl.static_range(9):
        products = _multiply(
            products, ws, inputs, 0, 0 if t < 3 else (-1 if t < 6 else 1), t % 3 - 1, t == 0, True,
            ROWS, STRIDE, Y, N,
        )  # fmt: skip
        if t < 8:
            ws = _load_stem_tap(stem, t + 1, M16)
    products = warpgroup_mma_wait(0, deps=products + (ws,))
    bias = gl.load(biases + gl.arange(0, 64, gl.SliceLayout(1, M16)))[:, None]
    for r in gl.static_range(N):
        target = _tile(cells, 1 + (Y + r) * STRIDE).permute((1, 0))
        _finish(target, products[r], bias, bias, False, COLUMNS, M16)
    fence_async_shared()
    mbarrier.arrive(done.index(2 * G + 1), count=1)

    # The blocks. The last one loads three taps beyond the end, which are packed as zeros.
    taps, offsets = layers, biases + 64
    for i in range(BLOCKS):
        w0, w1, w2 = _layer(
            cells, done, 1, i & 1, 0, BUFFER, w0, w1, w2, taps, offsets,
            False, M16, ROWS, COLUMNS, STRIDE, Y, N, G,
        )  # fmt: skip
        w0, w1, w2 = _layer(
            cells, done, 0, (i + 1) & 1, BUFFER, 0, w0, w1, w2, taps + 9 * _TAP, offsets + 64,
            True, M16, ROWS, COLUMNS, STRIDE, Y, N, G,
        )  # fmt: skip
        taps += 18 * _TAP
        offsets += 128

    # The heads' 1x1 layers, for all planes at once; each plane becomes a row per board, 64 cells long. They need no
    # data of the other group. But without this wait a group could arrive for its heads while the other still waits for
    # the last layer but one, and because of the parity that wait would never end.
    mbarrier.wait(done.index(2 * (1 - G) + 1), BLOCKS & 1)
    C8: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 8, 16])
    H8: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, _NB, 16])
    b8 = gl.load(head_bias + gl.arange(0, 8, gl.SliceLayout(0, C8)))[None, :]
    place = gl.arange(0, _TILE, gl.SliceLayout(1, C8))[:, None]
    for r in gl.static_range(N):
        own = _tile(cells, 1 + (Y + r) * STRIDE)
        product = warpgroup_mma(
            own, heads.index(G).permute((1, 0)), gl.zeros([_TILE, 8], gl.float32, C8), use_acc=False
        )
        product = gl.where(place < COLUMNS * _NB, gl.maximum(product + b8, 0.0), 0.0).to(gl.bfloat16)
        by_plane = product.reshape([8, _NB, 8]).permute([2, 1, 0]).reshape([8 * _NB, 8])
        flat_planes.slice((Y + r) * 8, 8, dim=1).store(by_plane)
    fence_async_shared()
    mbarrier.arrive(done.index(2 * G), count=1)
    mbarrier.wait(done.index(2 * (1 - G)), (BLOCKS + 1) & 1)

    # The linear layers: group 0 has the policy, group 1 the value.
    out = gl.arange(0, 64, gl.SliceLayout(1, H8))
    of_board = first_board + gl.arange(0, _NB, gl.SliceLayout(0, H8))
    none8 = gl.zeros([64, _NB], gl.float32, H8)
    if G == 0:
        for m in gl.static_range(TILES):
            total = none8
            for k in gl.static_range(POLICY):
                w = _load_tap(linear, m * POLICY + k, H8)
                total = warpgroup_mma(w, planes.index(k).permute((1, 0)), total, use_acc=k > 0)
            total += gl.load(linear_bias + m * 64 + out)[:, None]
            action = m * 64 + out[:, None]
            is_wanted = (action < ACTIONS) & (of_board[None, :] < num_boards)
            gl.store(logits + of_board[None, :] * ACTIONS + action, total, mask=is_wanted)
    else:
        hidden = none8
        for k in gl.static_range(VALUE):
            w = _load_tap(linear, TILES * POLICY + k, H8)
            hidden = warpgroup_mma(w, planes.index(POLICY + k).permute((1, 0)), hidden, use_acc=k > 0)
        own_bias = linear_bias + TILES * 64
        hidden = gl.maximum(hidden + gl.load(own_bias + out)[:, None], 0.0) * gl.load(own_bias + 64 + out)[:, None]
        value = gl.sum(hidden, axis=0) + gl.load(own_bias + 128)
        e = gl.exp(-2.0 * gl.abs(value))
        size = (1.0 - e) / (1.0 + e)  # tanh, which cannot leave [-1, 1]
        gl.store(values + of_board, gl.where(value < 0, -size, size), mask=of_board < num_boards)


@gluon.jit(do_not_specialize=["num_boards", "plane_stride", "cell_stride"])
def _tower_kernel(
    shown, stem, layers, biases, head, head_bias, linear, linear_bias, logits, values, num_boards, plane_stride,
    cell_stride,
    BLOCKS: gl.constexpr, PLANES: gl.constexpr, ROWS: gl.constexpr, COLUMNS: gl.constexpr, STRIDE: gl.constexpr,
    POLICY: gl.constexpr, VALUE: gl.constexpr, ACTIONS: gl.constexpr, TILES: gl.constexpr,
):  # fmt: skip
    BUFFER: gl.constexpr = ROWS * STRIDE + 2
    UPPER: gl.constexpr = (ROWS + 1) // 2
    SL: gl.constexpr = gl.NVMMASharedLayout(128, 16, 2)
    cells = gl.allocate_shared_memory(gl.bfloat16, [2 * BUFFER, _NB, 64], gl.NVMMASharedLayout(128, 16, 2))
    inputs = gl.allocate_shared_memory(gl.bfloat16, [BUFFER, _NB, 16], gl.NVMMASharedLayout(32, 16, 2))
    planes = gl.allocate_shared_memory(gl.bfloat16, [8, _NB, 64], SL)
    heads = gl.allocate_shared_memory(gl.bfloat16, [2, 8, 64], SL)
    done = gl.allocate_shared_memory(gl.int64, [4, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(4):
        mbarrier.init(done.index(i), count=1)
    first_board = gl.program_id(0) * _NB
    gl.warp_specialize(
        [
            (
                _group,
                (
                    cells, inputs, planes, heads, done, shown, stem, layers, biases, head, head_bias, linear,
                    linear_bias, logits, values, first_board, num_boards, plane_stride, cell_stride, BLOCKS, PLANES,
                    ROWS, COLUMNS, STRIDE, BUFFER, POLICY, VALUE, ACTIONS, TILES, gl.constexpr(0), UPPER,
                    gl.constexpr(0),
                ),
            ),
            (
                _group,
                (
                    cells, inputs, planes, heads, done, shown, stem, layers, biases, head, head_bias, linear,
                    linear_bias, logits, values, first_board, num_boards, plane_stride, cell_stride, BLOCKS, PLANES,
                    ROWS, COLUMNS, STRIDE, BUFFER, POLICY, VALUE, ACTIONS, TILES, UPPER, ROWS - UPPER,
                    gl.constexpr(1),
                ),
            ),
        ],
        [4],
        [_REGISTERS],
    )  # fmt: skip


# --- Host -------------------------------------------------------------------------------------------------------------


def evaluate(weights: TowerWeights, observations: Tensor, logits: Tensor, values: Tensor) -> None:
    """See `tower_torch.evaluate`. The weights must be bfloat16, and the GPU must have compute capability 9.0."""
    launch(weights, observations, logits, values)


def launch(weights: TowerWeights, observations: Tensor, logits: Tensor, values: Tensor) -> Any:
    """Evaluate B positions, and return the compiled kernel with its `n_regs` and `n_spills`."""
    check_call(weights, observations, logits, values)
    assert weights.layers.dtype == torch.bfloat16
    shape, num_boards = weights.shape, len(observations)
    num_cells = shape.rows * shape.columns
    strides = num_cells, 1
    if not observations.is_contiguous():
        if observations.is_contiguous(memory_format=torch.channels_last):
            strides = 1, shape.planes
        else:
            observations = observations.contiguous()
    kernel: Any = _tower_kernel
    return kernel[(triton.cdiv(num_boards, BOARDS),)](
        *(observations, weights.stem, weights.layers, weights.biases, weights.head, weights.head_bias),
        *(weights.linear, weights.linear_bias, logits, values, num_boards, *strides),
        BLOCKS=shape.blocks,
        PLANES=shape.planes,
        ROWS=shape.rows,
        COLUMNS=shape.columns,
        STRIDE=shape.stride,
        POLICY=shape.policy_planes,
        VALUE=shape.value_planes,
        ACTIONS=shape.num_actions,
        TILES=shape.num_tiles,
        num_warps=4,
        maxnreg=NUM_REGISTERS,
    )
