# SPDX-License-Identifier: Apache-2.0
"""Torch's own words give what torch gives, methods and functions, or are refused."""

# torch has partial types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import nfuser
from nfuser.compiler.trace.torch.words import table
from nfuser.errors import NfuserError

if TYPE_CHECKING:
    from collections.abc import Callable

torch: Any = pytest.importorskip("torch")
F: Any = torch.nn.functional
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of torch itself


def _tensors(dtype: Any) -> dict[str, Any]:
    """Return x and y of (4, 6), positive p, an index, a mask, a weight, classes."""
    torch.manual_seed(0)
    x, y = (torch.randn(4, 6, dtype=torch.float64) * 2 for _ in range(2))
    return {
        "x": x.to(dtype),
        "y": y.to(dtype),
        "p": (torch.rand(4, 6, dtype=torch.float64) * 0.8 + 0.1).to(dtype),
        "b": torch.randn(2, 4, 6, dtype=torch.float64).to(dtype),
        "c": torch.randn(2, 6, 3, dtype=torch.float64).to(dtype),
        "w": torch.randn(6, dtype=torch.float64).to(dtype),
        "v": torch.randn(6, dtype=torch.float64).to(dtype),
        "i": torch.tensor([[0, 2, 1, 5], [3, 3, 0, 1]]),
        "k": torch.tensor([3, 0, 5, 2]),
        "m": torch.arange(24).reshape(4, 6) % 3 == 0,
    }


FLOATS: dict[str, Callable[..., Any]] = {
    # elementwise, as functions and as methods
    **{
        name: lambda x, name=name: getattr(torch, name)(x)
        for name in (
            *("exp", "expm1", "exp2", "sin", "cos", "tan", "tanh", "sinh", "cosh"),
            *("atan", "asinh", "sigmoid", "erf", "erfc", "floor", "ceil", "trunc"),
            *("round", "sign", "sgn", "abs", "neg", "square", "reciprocal", "isnan"),
            *("isinf", "isfinite", "signbit", "relu", "frac", "deg2rad", "arctan"),
            *("logical_not", "positive", "sinc"),
        )
    },
    **{
        f"of p: {name}": lambda p, name=name: getattr(p, name)()
        for name in (
            *("log", "log2", "log10", "log1p", "sqrt", "rsqrt", "asin", "acos"),
            *("atanh", "logit", "erfinv", "lgamma"),
        )
    },
    **{
        f"{name} of two": lambda x, y, name=name: getattr(torch, name)(x, y)
        for name in (
            *("add", "sub", "mul", "div", "maximum", "minimum", "fmax", "fmin"),
            *("fmod", "remainder", "atan2", "hypot", "logaddexp", "eq", "ne", "lt"),
            *("le", "gt", "ge", "copysign", "rsub", "true_divide", "logical_and"),
        )
    },
    "add alpha": lambda x, y: x.add(y, alpha=2),
    "sub alpha": lambda x, y: torch.sub(x, y, alpha=0.5),
    "div floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "div trunc": lambda x, y: x.div(y, rounding_mode="trunc"),
    "pow": lambda p, y: p.pow(y) + torch.pow(p, 2) + p.pow(0.5),
    "where": lambda x, y: torch.where(x > 0, x, y) + torch.where(x > 1, 0.0, y),
    "masked_fill": lambda x, m: x.masked_fill(m, -1.5) + torch.masked_fill(x, ~m, 2),
    "clamp": lambda x: x.clamp(min=-1) + x.clamp_max(1) + torch.clamp(x, -0.5, 0.5),
    "clamp_min": lambda x, y: torch.clamp_min(x, 0.25) + x.clamp(min=y),
    "lerp": lambda x, y: x.lerp(y, 0.25),
    "addcmul": lambda x, y, p: torch.addcmul(x, y, p, value=0.5),
    "addcdiv": lambda x, y, p: x.addcdiv(y, p),
    "xlogy": lambda x, p: torch.xlogy(x, p),
    "nan_to_num": lambda x: (x / (x * 0)).nan_to_num(0.0, 1.0, -1.0),
    "isclose": lambda x, y: torch.isclose(x, y, rtol=0.5),
    # shapes
    "unsqueeze": lambda x: x.unsqueeze(1) + torch.unsqueeze(x, -1)[:, :1].mT,
    "permute": lambda b: b.permute(2, 0, 1) + torch.permute(b, (2, 0, 1)),
    "movedim": lambda b: torch.movedim(b, 0, -1),
    "t": lambda x: x.t() + torch.t(x),
    "view": lambda x: x.view(2, -1) + x.view(2, 12) + x.reshape(2, 12),
    "view_as": lambda x, c: x.reshape(-1)[:18].reshape(2, 9),
    "unflatten": lambda x: x.unflatten(1, (2, 3)) + x.unflatten(-1, (2, -1)),
    "flatten": lambda b: b.flatten(1) + torch.flatten(b, 1),
    "expand": lambda w: w.expand(4, 6) + w[None].expand(4, -1) + w.expand(4, 6),
    "expand_as": lambda w, x: w.expand_as(x),
    "broadcast_to": lambda w: torch.broadcast_to(w, (2, 6)),
    "narrow": lambda x: x.narrow(1, 2, 3) + torch.narrow(x, 1, 0, 3),
    "select": lambda x: x.select(1, 2) + torch.select(x, 1, -1),
    "unbind": lambda x: sum(x.unbind(0)) + sum(torch.unbind(x)),
    "split": lambda x: [a * 2 for a in (*x.split(4, 1), *torch.split(x, [1, 3]))],
    "chunk": lambda x: [a + 1 for a in (*x.chunk(4, 1), *torch.chunk(x, 3))],
    "tensor_split": lambda x: [a + 1 for a in torch.tensor_split(x, 4, 1)],
    "cat": lambda x, y: torch.cat([x, y], -1) + torch.cat((x, y), dim=1),
    "stack": lambda x, y: torch.stack([x, y], 1),
    "hstack": lambda x, y: torch.hstack([x, y]),
    "vstack": lambda x, y: torch.vstack([x, y]),
    "flip": lambda x: x.flip(0) + torch.flip(x, (0, 1)) + x.flip([1]),
    "roll": lambda x: x.roll(1, 0) + torch.roll(x, (1, 2), (0, 1)) + x.roll(3),
    "rot90": lambda x: torch.rot90(x),
    "tile": lambda x: torch.tile(x, (2, 1)),
    "repeat": lambda x: x.repeat(2, 1),
    "repeat_interleave": lambda x: x.repeat_interleave(2, dim=1),
    "tril": lambda x: x.tril() + torch.triu(x, 1) + x.tril(-1),
    "diag": lambda w: torch.diag(w) + w.diag(),
    "pad": lambda x: F.pad(x, (1, 2)) + F.pad(x, (1, 2), "replicate"),
    "pad cut": lambda x: F.pad(x, (-1, 2, 1, -2), value=3.0),
    "pad reflect": lambda b: (
        F.pad(b, (1, 2), mode="reflect") + F.pad(b, (2, 1), "circular")
    ),
    "swapdims": lambda b: torch.swapaxes(b, 0, 1) + b.swapdims(0, 1),
    "transpose": lambda b: torch.transpose(b, 1, 2) + b.mT,
    "squeeze": lambda x: torch.squeeze(x[None], 0) + x[None].squeeze(),
    "sizes": lambda x: x * x.size(0) + x.size(-1) + x.numel() + x.dim() + len(x.size()),
    "meshgrid": lambda w, v: torch.meshgrid(w, v, indexing="ij"),
    # kinds
    "to": lambda x: x.to(torch.float64) + x.double() + x.to(x) + x.to(x.device),
    "kinds": lambda x: (x.float(), x.half(), x.bfloat16(), x.bool(), (x > 0).int()),
    "integers": lambda x: (x.long(), x.int(), x.short(), x.char(), x.abs().byte()),
    "type_as": lambda x, i: i.type_as(x) + i.type(x.dtype),
    "contiguous": lambda x: x.contiguous() + x.clone() + x.detach(),
    "likes": lambda x: torch.zeros_like(x) + torch.ones_like(x) + torch.full_like(x, 2),
    "news": lambda x: x.new_zeros(6) + x.new_full((6,), 2.0) + x.new_ones((4, 1)),
    "asked": lambda x: x * x.is_floating_point() + x.element_size() * x.is_cpu,
    # folds
    "sum": lambda x: torch.sum(x, 0) + x.sum(0) + torch.mean(x, dim=0),
    "max": lambda x: (torch.max(x), x.max(1).values, x.max(dim=0, keepdim=True)[1]),
    "min": lambda x, y: (x.min(-1)[0], torch.min(x, 1).indices, torch.min(x, y)),
    "amax": lambda x: torch.amax(x, (0, 1)) + torch.amin(x, 0),
    "aminmax": lambda x: (torch.aminmax(x).max, x.aminmax(dim=1).min),
    "argmax": lambda x: (torch.argmax(x), torch.argmin(x, 1)),
    "sort": lambda x: (*x.sort(), *torch.sort(x, 0, descending=True)),
    "argsort": lambda x: x.argsort(0, True),
    "topk": lambda x: (*x.topk(2), *torch.topk(x, 3, dim=0, largest=False)),
    "median": lambda x: (x.median(), *x.median(1), *torch.median(x, 0, True)),
    "logsumexp": lambda x: torch.logsumexp(x, -1) + x.logsumexp((1,)),
    "norm": lambda x: x.norm() + torch.norm(x, 1) + x.norm(dim=1).sum() + x.norm(3),
    "norms": lambda x: x.norm(float("inf"), dim=0) + x.norm(2, 0) + x.norm(0, 0),
    "dist": lambda x, y: torch.dist(x, y),
    "var": lambda x: torch.var(x, 1) + x.var(1, unbiased=False) + torch.std(x, 1),
    "var_mean": lambda x: (*torch.var_mean(x, 1), *torch.std_mean(x, dim=0)),
    "softmax": lambda x: x.softmax(-1) + F.softmax(x, dim=1) + torch.softmax(x, 1),
    "log_softmax": lambda x: x.log_softmax(0) + F.log_softmax(x, dim=0),
    "count_nonzero": lambda x: torch.count_nonzero(x > 0, dim=1),
    "cumsum": lambda x: torch.cumsum(x, 1) + x.cumprod(0),
    "diff": lambda x: torch.diff(x) + x.diff(n=1, dim=1),
    "nansum": lambda x: torch.nansum(x, 1) + x.nanmean(1),
    "all": lambda x: (torch.all(x > 0, 1), torch.any(x > 0)),
    # parts and products
    "gather": lambda x, i: x.gather(1, i) + torch.gather(x, 1, i),
    "take_along_dim": lambda x, k: torch.take_along_dim(x, k[:, None], 1),
    "index_select": lambda x, k: x.index_select(1, k) + torch.index_select(x, 1, k),
    "embedding": lambda x, i: F.embedding(i % 4, x),
    "one_hot": lambda k: F.one_hot(k, 6),
    "matmul": lambda x, y: torch.matmul(x, y.T) + x.mm(y.t()) + x @ y.mT,
    "bmm": lambda b, c: torch.bmm(b, c) + b @ c,
    "mv": lambda x, w: torch.mv(x, w) + x.mv(w),
    "addmm": lambda x, y: torch.addmm(x[:, :4], x, y.T, beta=0.5, alpha=2),
    "linear": lambda x, y, w: F.linear(x, y) + F.linear(x, y, w[:4]),
    "outer": lambda w, v: torch.outer(w, v),
    "einsum": lambda b, c: torch.einsum("bij,bjk->bik", b, c),
    "tensordot": lambda x, y: torch.tensordot(x, y, dims=2),
    # layers and losses
    **{
        f"F.{name}": lambda x, name=name: getattr(F, name)(x)
        for name in (
            *("relu", "gelu", "silu", "leaky_relu", "elu", "celu", "selu", "relu6"),
            *("hardtanh", "hardsigmoid", "hardswish", "softplus", "logsigmoid"),
            *("mish", "softsign", "tanhshrink", "glu", "sigmoid", "tanh", "normalize"),
        )
    },
    "gelu tanh": lambda x: F.gelu(x, approximate="tanh"),
    "softplus beta": lambda x: F.softplus(x, beta=2, threshold=1),
    "elu alpha": lambda x: F.elu(x, 0.5) + F.leaky_relu(x, 0.2),
    "layer_norm": lambda x, w, v: F.layer_norm(x, (6,), w, v) + F.layer_norm(x, [6]),
    "layer_norm of two axes": lambda b: F.layer_norm(b, (4, 6), eps=1e-3),
    "rms_norm": lambda x, w: F.rms_norm(x, (6,), w) + F.rms_norm(x, (6,), eps=0.1),
    "group_norm": lambda b: F.group_norm(b, 2) + F.group_norm(b, 4, b[0, :, 0]),
    "batch_norm": lambda x, w, v: F.batch_norm(
        x, w.detach(), v.detach().abs(), v, training=False
    ),
    "batch_norm of the batch": lambda b: F.batch_norm(b, None, None, training=True),
    "dropout": lambda x: F.dropout(x, 0.5, training=False) + F.dropout(x, 0.0),
    "cosine_similarity": lambda x, y: F.cosine_similarity(x, y),
    "mse_loss": lambda x, y: F.mse_loss(x, y) + F.mse_loss(x, y, reduction="sum"),
    "l1_loss": lambda x, y: F.l1_loss(x, y, reduction="none"),
    "smooth_l1_loss": lambda x, y: F.smooth_l1_loss(x, y) + F.huber_loss(x, y),
    "kl_div": lambda x, p: F.kl_div(x, p, reduction="batchmean"),
    "bce": lambda p, m: F.binary_cross_entropy(p, m.to(p.dtype)),
    "bce_logits": lambda x, m: F.binary_cross_entropy_with_logits(x, m.to(x.dtype)),
    "nll_loss": lambda x, k: F.nll_loss(x.log_softmax(1), k, ignore_index=5),
    "nll_loss weight": lambda x, w, k: F.nll_loss(x, k, w.detach().abs()),
    "cross_entropy": lambda x, k: F.cross_entropy(x, k),
    "cross_entropy smooth": lambda x, k: F.cross_entropy(x, k, label_smoothing=0.1),
    "cross_entropy each": lambda x, k: F.cross_entropy(x, k, reduction="none"),
    "cross_entropy shares": lambda x, p: F.cross_entropy(x, p.softmax(1)),
    "cross_entropy of images": lambda b, i: F.cross_entropy(b[:, :, :4], i % 4),
    # in place, on what is made inside
    "in place": lambda x: (x * 1).add_(1).mul_(2).clamp_(min=0).masked_fill_(x > 1, 7),
    "filled": lambda x: torch.empty_like(x).fill_(2) + torch.empty_like(x).copy_(x),
    "zeroed": lambda x: (x + 0).zero_() + (x * 1).exp_(),
}
INTEGERS = {
    name: FLOATS[name]
    for name in (
        *("exp", "sin", "sigmoid", "floor", "abs", "square", "add of two", "where"),
        *("div of two", "maximum of two", "add alpha", "div floor", "atan2 of two"),
        *("cat", "stack", "masked_fill", "softmax", "max", "sort", "cumsum"),
        *("tril", "clamp", "eq of two", "gather", "view", "sum of"),
    )
    if name in FLOATS
}


def arguments_of(run: Callable[..., Any], dtype: Any) -> list[Any]:
    given = _tensors(dtype)
    count = run.__code__.co_argcount - len(run.__defaults__ or ())
    return [given[name] for name in run.__code__.co_varnames[:count]]


def listed(found: Any) -> list[Any]:
    return [*found] if isinstance(found, (tuple, list)) else [found]


def _close(ours: Any, theirs: Any, dtype: Any) -> None:
    one, other = listed(ours), listed(theirs)
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        wide = {torch.float64: 1e-12, torch.float32: 2e-5}.get(dtype, 0.04)
        torch.testing.assert_close(a, b, rtol=wide, atol=wide, equal_nan=True)


@pytest.mark.parametrize("name", FLOATS)
def test_a_word_gives_what_torch_gives(name: str) -> None:
    run = FLOATS[name]
    given = arguments_of(run, torch.float32)
    _close(nfuser.fuse(run)(*given), run(*given), torch.float32)


@pytest.mark.parametrize("name", INTEGERS)
def test_a_word_of_integers_gives_what_torch_gives(name: str) -> None:
    run = INTEGERS[name]
    try:
        expected = run(*arguments_of(run, torch.int32))
    except RuntimeError:
        return  # torch takes none
    found = nfuser.fuse(run)(*arguments_of(run, torch.int32))
    _close(found, expected, torch.float32)


# Where torch has slopes of its own at corners, or none, values are no corners here.
FLAT = {
    "aminmax",
    "nan_to_num",
    "kinds",
    "integers",
    "likes",
    "news",
    "one_hot",
    "isclose",
    "sizes",
    "zeroed",
}


@pytest.mark.parametrize("name", sorted(FLOATS.keys() - FLAT))
def test_a_word_has_the_gradient_that_torch_has(name: str) -> None:
    run = FLOATS[name]

    def gradients(function: Callable[..., Any]) -> list[Any] | None:
        given = [
            a.clone().requires_grad_() if a.is_floating_point() else a
            for a in arguments_of(run, torch.float64)
        ]
        found = listed(function(*given))
        taken = [a for a in found if a.is_floating_point() and a.requires_grad]
        if not taken:
            return None
        weights = (torch.arange(a.numel()).reshape(a.shape).to(a.dtype) for a in taken)
        total = sum((a * w.cos()).sum() for a, w in zip(taken, weights, strict=True))
        asked = [a for a in given if a.requires_grad]
        return list(torch.autograd.grad(total, asked, allow_unused=True))

    expected = gradients(run)
    if expected is None:
        return
    found = gradients(nfuser.fuse(run))
    assert found is not None
    for ours, theirs in zip(found, expected, strict=True):
        wanted = torch.zeros_like(ours) if theirs is None else theirs
        # torch divides by 6 in float32 here.
        wide = 1e-7 if "hard" in name else 1e-10
        torch.testing.assert_close(ours, wanted, rtol=max(wide, 1e-8), atol=wide)


ALIASES = {
    "absolute": "abs",
    "negative": "neg",
    "arcsin": "asin",
    "arccos": "acos",
    "arctanh": "atanh",
    "arcsinh": "asinh",
    "special_expit": "sigmoid",
    "multiply": "mul",
    "subtract": "sub",
    "divide": "div",
    "arctan2": "atan2",
    "not_equal": "ne",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
}
MORE: dict[str, Callable[..., Any]] = {
    "of positives": lambda p: [
        *(torch.acosh(p + 1), torch.arccosh(p + 1), torch.rad2deg(p), p.isposinf()),
        *(p.isneginf(), torch.heaviside(p - 0.5, p), torch.nextafter(p, p + 1)),
        *(torch.logaddexp2(p, p), p.logical_or(p > 1), p.logical_xor(p > 1)),
    ],
    "of integers": lambda k: [
        *(torch.bitwise_and(k, 3), torch.bitwise_or(k, k), k.bitwise_xor(5)),
        *(torch.bitwise_not(k), torch.bitwise_left_shift(k, 2), torch.gcd(k, k + 3)),
        *(torch.bitwise_right_shift(k, 1), torch.lcm(k, k + 3), k.floor_divide(2)),
    ],
    "joined": lambda x, y: [
        *(torch.concat([x, y]), torch.concatenate([x, y], 1), torch.dstack([x, y])),
        *(torch.fliplr(x), torch.flipud(x), torch.moveaxis(x, 0, 1), torch.msort(x)),
    ],
    "named": lambda x, b, c: [
        *(torch.adjoint(x) * 2, torch.baddbmm(b[:, :, :3], b, c), x.mH * 1.0),
        *(x.new_empty(3) * 0, x * x.ndimension() * x.nelement(), x.reshape_as(x) * 1),
        *(x * x.is_complex() + x.get_device() * 0, x * x.is_cuda, x.H * 1),
    ],
    "complex": lambda x: [x.cfloat(), x.cdouble()],
}


@pytest.mark.parametrize("name", ALIASES)
def test_another_name_is_the_same_word(name: str) -> None:
    given = _tensors(torch.float32)

    def run(p: Any, x: Any) -> list[Any]:
        taken = (p, x * 0.1)
        found: list[Any] = []
        for word in (name, ALIASES[name]):
            function = getattr(torch, word, None) or torch.special.expit
            try:
                found.append(function(*taken))
            except TypeError:
                found.append(function(p))
        return found

    ours, again = nfuser.fuse(run)(given["p"], given["x"])
    torch.testing.assert_close(ours, again, rtol=0, atol=0)
    torch.testing.assert_close(ours, run(given["p"], given["x"])[0])


@pytest.mark.parametrize("name", MORE)
def test_more_words_give_what_torch_gives(name: str) -> None:
    given = arguments_of(MORE[name], torch.float32)
    _close(nfuser.fuse(MORE[name])(*given), MORE[name](*given), torch.float32)


def test_every_word_is_tried() -> None:
    code = "".join(
        " ".join(map(str, (run.__code__.co_names, run.__code__.co_consts)))
        for run in (*FLOATS.values(), *MORE.values())
    ) + " ".join((*FLOATS, *ALIASES, "cpu", "cuda", "log_sigmoid", "divide"))
    # tests/random/test_torch_words.py has those that draw.
    draws = {"bernoulli", "rand_like", "randn_like"}
    told = {*table._FUNCTIONS} - {*table.METHODS}  # pyright: ignore[reportPrivateUsage]
    missing = sorted(name for name in told - draws if name not in code)
    assert missing == []


class Block(torch.nn.Module):
    """Norm, two layers, and what was there before."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(6)
        self.up = torch.nn.Linear(6, 8)
        self.down = torch.nn.Linear(8, 6)
        self.act = torch.nn.SiLU()

    def forward(self, x: Any) -> Any:
        return x + self.down(self.act(self.up(self.norm(x))))


def test_a_module_of_torchs_layers_is_fused_and_trains() -> None:
    torch.manual_seed(0)
    block = Block().double()
    x = torch.randn(4, 6, dtype=torch.float64)
    fused = nfuser.fuse(block.forward)
    torch.testing.assert_close(fused(x), block(x))
    found = []
    for run in (fused, block):
        block.zero_grad()
        run(x).square().sum().backward()
        found.append([p.grad.clone() for p in block.parameters()])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs)
    told = fused.explain(x)
    assert told.kernels <= 3
    assert fused.report(x).to_dict()["name"] == "forward"
    with torch.no_grad():
        block.up.weight.mul_(2)
    torch.testing.assert_close(fused(x), block(x))


def test_shapes_stay_open() -> None:
    fused = nfuser.fuse(
        lambda x: torch.cat([x.chunk(2, -1)[1], x.view(x.size(0), -1)[:, :2]], dim=-1)
    )
    for n in range(4, 40, 6):
        x = torch.randn(3, n)
        torch.testing.assert_close(fused(x), fused.__wrapped__(x))
    assert fused.cache_info().traces <= 2


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a device": (lambda x: x.to("meta"), "move tensors before or after the call"),
    "bytes": (lambda x: x.view(torch.int32), r"write x\.to\(dtype\)"),
    "relu_": (lambda x: F.relu(x, inplace=True), "leave inplace=True out"),
    "classes": (lambda x: F.one_hot(x.long()), "leave num_classes= out"),
    "a reduction": (lambda x: F.mse_loss(x, x, reduction="avg"), "one of 'none'"),
    "a shape": (lambda x: F.layer_norm(x, (5,)), r"last sizes are \(5,\)"),
    "no axis": (lambda x: F.softmax(x), "write dim="),
    "unknown": (lambda x: torch.fft.fft(x), "torch.fft_fft"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_fused_form_is_refused_by_name(name: str) -> None:
    run, match = REFUSED[name]
    with pytest.raises(NfuserError, match=match):
        nfuser.fuse(run)(torch.ones(4, 6))
