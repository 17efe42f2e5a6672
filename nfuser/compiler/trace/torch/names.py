# SPDX-License-Identifier: Apache-2.0
"""What to write for torch's names, as methods, attributes and functions alike.

One row is a name and what stands for it, on traced arrays of any library. ``xp`` is
``nfuser.numpy``.
"""

from __future__ import annotations

_NO_GRADIENTS = "loss.backward() outside, after the call, or nfuser.grad inside"
_STAYS = "nothing: results stay where the inputs are"
_CONVERTED = "x.astype(dtype)"
_NORM = (
    "(x - mean) / np.sqrt(variance + eps) with mean and variance over the right axes"
)
_OUTSIDE = "it outside the fused function, and pass what it gives as an argument"

_ROWS = {
    # shape
    "unsqueeze": "np.expand_dims(x, axis) or x[:, None]",
    "permute": "np.transpose(x, order)",
    "movedim": "np.moveaxis(x, source, destination)",
    "view": "x.reshape(shape)",
    "view_as": "x.reshape(y.shape)",
    "reshape_as": "x.reshape(y.shape)",
    "unflatten": "x.reshape(*x.shape[:axis], *sizes, *x.shape[axis + 1:])",
    "expand": "np.broadcast_to(x, shape)",
    "expand_as": "np.broadcast_to(x, y.shape)",
    "t": "x.T",
    "adjoint": "np.conj(x.mT)",
    "H": "np.conj(x.T)",
    "mH": "np.conj(x.mT)",
    "numel": "x.size",
    "dim": "x.ndim",
    "ndimension": "x.ndim",
    "narrow": "x[start:start + length]",
    "select": "x[index], or x[:, index] for axis 1",
    "unbind": "[x[k] for k in range(n)], or xp.unstack(x, axis=axis)",
    "chunk": "np.array_split(x, n, axis)",
    "split": "np.split(x, range(size, n, size), axis): NumPy counts parts, torch sizes",
    "tensor_split": "np.array_split(x, n, axis)",
    "hsplit": "np.hsplit(x, n)",
    "vsplit": "np.vsplit(x, n)",
    "dsplit": "np.dsplit(x, n)",
    "cat": "np.concatenate([x, y], axis)",
    "concat": "np.concatenate([x, y], axis)",
    "stack": "np.stack([x, y], axis)",
    "hstack": "np.hstack([x, y])",
    "vstack": "np.vstack([x, y])",
    "roll": "np.roll(x, shift, axis)",
    "rot90": "np.rot90(x, k, axes)",
    "flip": "np.flip(x, axis)",
    "fliplr": "np.fliplr(x)",
    "flipud": "np.flipud(x)",
    "tile": "np.tile(x, counts)",
    "repeat": "np.tile(x, counts), or np.repeat(x, n, axis) for a a b b",
    "repeat_interleave": "np.repeat(x, n, axis)",
    "tril": "np.tril(x)",
    "triu": "np.triu(x)",
    "diag": "np.diag(x)",
    "unfold": "np.lib.stride_tricks.sliding_window_view(x, size, axis)[::step]",
    "pad": "np.pad(x, ((before, after), ...))",
    "meshgrid": "np.meshgrid(x, y, indexing='ij')",
    # kind and place
    "contiguous": "nothing: outputs are laid out as NumPy's",
    "to": _CONVERTED,
    "type": _CONVERTED,
    "type_as": "x.astype(y.dtype)",
    "float": "x.astype(np.float32)",
    "double": "x.astype(np.float64)",
    "half": "x.astype(np.float16)",
    "bfloat16": "x.astype(ml_dtypes.bfloat16)",
    "int": "x.astype(np.int32)",
    "long": "x.astype(np.int64)",
    "short": "x.astype(np.int16)",
    "char": "x.astype(np.int8)",
    "byte": "x.astype(np.uint8)",
    "bool": "x.astype(bool)",
    "cfloat": "x.astype(np.complex64)",
    "cdouble": "x.astype(np.complex128)",
    "clone": "np.copy(x)",
    "detach": "nfuser.stop_gradient(x)",
    "requires_grad": _NO_GRADIENTS,
    "requires_grad_": _NO_GRADIENTS,
    "grad": _NO_GRADIENTS,
    "grad_fn": _NO_GRADIENTS,
    "backward": _NO_GRADIENTS,
    "is_leaf": _NO_GRADIENTS,
    "cpu": _STAYS,
    "cuda": _STAYS,
    "is_cuda": "x.device.type == 'cuda'",
    "is_cpu": "x.device.type == 'cpu'",
    "get_device": "x.device.index",
    "numpy": "nothing: NumPy's functions take the traced array as it is",
    "element_size": "x.itemsize",
    "is_floating_point": "x.dtype.is_floating_point",
    "is_complex": "x.dtype.is_complex",
    "is_contiguous": "nothing: a traced array has no memory yet",
    "stride": "nothing: a traced array has no memory yet",
    "data_ptr": "nothing: a traced array has no memory yet",
    "storage": "nothing: a traced array has no memory yet",
    # folds, scans, orders
    "amax": "np.max(x, axis)",
    "amin": "np.min(x, axis)",
    "aminmax": "np.min(x, axis) and np.max(x, axis)",
    "median": "np.median(x, axis), the mean of the two in the middle; torch's is the "
    "lower of them, np.sort(x, axis)[..., (x.shape[-1] - 1) // 2]",
    "nanmedian": "np.nanmedian(x, axis), the mean of the two in the middle",
    "mode": "it by np.sort and np.diff",
    "quantile": "np.quantile(x, q, axis)",
    "nanmean": "np.nanmean(x, axis)",
    "nansum": "np.nansum(x, axis)",
    "logsumexp": "xp.logsumexp(x, axis)",
    "norm": "np.sqrt((x * x).sum(axis)), or np.linalg.norm(x, axis=axis)",
    "dist": "np.sqrt(((x - y) ** 2).sum())",
    "count_nonzero": "np.count_nonzero(x, axis)",
    "var_mean": "xp.var_mean(x, axis, correction=1)",
    "std_mean": "np.std(x, axis, ddof=1) and np.mean(x, axis)",
    "sort": "np.sort(x, axis) for the values, np.argsort(x, axis) for where they were",
    "msort": "np.sort(x, 0)",
    "argsort": "np.argsort(x, axis), or xp.argsort(x, axis, descending=True)",
    "topk": "xp.sort(x, axis, descending=True)[..., :k], and xp.argsort likewise",
    "kthvalue": "np.sort(x, axis)[..., k - 1]",
    "cummax": "np.maximum.accumulate(x, axis)",
    "cummin": "np.minimum.accumulate(x, axis)",
    "logcumsumexp": "np.log(np.exp(x).cumsum(axis))",
    "diff": "np.diff(x, n, axis)",
    "searchsorted": "np.searchsorted(x, v)",
    "bucketize": "np.searchsorted(edges, x)",
    # choices and parts
    "masked_fill": "np.where(mask, value, x)",
    "masked_select": "np.where(mask, x, fill) keeps the shape",
    "masked_scatter": "np.where(mask, y, x)",
    "gather": "np.take_along_axis(x, index, axis)",
    "take_along_dim": "np.take_along_axis(x, index, axis)",
    "index_select": "np.take(x, index, axis)",
    "embedding": "weight[index]",
    "one_hot": "x[..., None] == xp.arange(n)",
    "scatter": "np.where(condition, new, x)",
    "scatter_add": "a sum over x[..., None] == xp.arange(n)",
    "index_add": "a sum over index[..., None] == xp.arange(n)",
    "index_put": "np.where(condition, new, x)",
    "nonzero": "np.where(condition, x, fill) keeps the shape",
    "unique": _OUTSIDE,
    "clamp": "np.clip(x, low, high)",
    "clamp_min": "np.maximum(x, low)",
    "clamp_max": "np.minimum(x, high)",
    "lerp": "x + weight * (y - x)",
    "addcmul": "x + value * y * z",
    "addcdiv": "x + value * y / z",
    "nan_to_num": "np.nan_to_num(x)",
    # elementwise
    "abs": "np.abs(x)",
    "pow": "x ** y",
    "add": "x + y",
    "sub": "x - y",
    "rsub": "y - x",
    "mul": "x * y",
    "div": "x / y",
    "true_divide": "x / y",
    "floor_divide": "x // y",
    "remainder": "x % y",
    "neg": "-x",
    "eq": "x == y",
    "ne": "x != y",
    "lt": "x < y",
    "le": "x <= y",
    "gt": "x > y",
    "ge": "x >= y",
    "frac": "x - np.trunc(x)",
    "lgamma": "it outside: gamma functions have no fused form here",
    "sgn": "np.sign(x)",
    "logit": "np.log(x / (1 - x))",
    "xlogy": "np.where(x == 0, 0, x * np.log(y))",
    # products
    "mm": "x @ y",
    "bmm": "x @ y",
    "mv": "x @ y",
    "addmm": "b + x @ y",
    "baddbmm": "b + x @ y",
    "inner": "np.inner(x, y)",
    "outer": "np.outer(x, y)",
    "einsum": "np.einsum(subscripts, x, y)",
    "tensordot": "np.tensordot(x, y, axes)",
    "linear": "x @ weight.T + bias",
    "bilinear": "np.einsum('bi,oij,bj->bo', x, weight, y)",
    "scaled_dot_product_attention": "xp.softmax(q @ k.mT * scale, -1) @ v",
    # layers
    "softmax": "xp.softmax(x, axis)",
    "log_softmax": "xp.log_softmax(x, axis)",
    "softplus": "xp.softplus(x)",
    "layer_norm": "xp.layer_norm(x, weight, bias, eps=eps)",
    "rms_norm": "xp.rms_norm(x, weight, eps=eps)",
    "normalize": "x / np.sqrt((x * x).sum(axis, keepdims=True))",
    "batch_norm": _NORM,
    "group_norm": _NORM,
    "instance_norm": _NORM,
    "elu": "np.where(x > 0, x, alpha * np.expm1(x))",
    "leaky_relu": "np.where(x > 0, x, slope * x)",
    "relu6": "np.clip(x, 0, 6)",
    "hardtanh": "np.clip(x, low, high)",
    "hardsigmoid": "np.clip(x / 6 + 0.5, 0, 1)",
    "hardswish": "x * np.clip(x / 6 + 0.5, 0, 1)",
    "mish": "x * np.tanh(xp.softplus(x))",
    "selu": "scale * np.where(x > 0, x, alpha * np.expm1(x))",
    "glu": "a * xp.sigmoid(b), where a, b = np.split(x, 2, -1)",
    "logsigmoid": "-xp.softplus(-x)",
    "tanhshrink": "x - np.tanh(x)",
    "mse_loss": "((x - y) ** 2).mean()",
    "l1_loss": "np.abs(x - y).mean()",
    "nll_loss": "-np.take_along_axis(x, target[:, None], 1).mean()",
    "cross_entropy": "-np.take_along_axis(xp.log_softmax(x, -1), target[:, None], "
    "1).mean()",
    "conv1d": "np.convolve(x, kernel, 'valid'), or a sum of shifted slices",
    "conv2d": "a sum of shifted slices, x[..., i:i + h, j:j + w] * weight[i, j]",
    "max_pool2d": "np.max(x.reshape(b, c, h, k, w, k), axis=(3, 5))",
    "avg_pool2d": "x.reshape(b, c, h, k, w, k).mean((3, 5))",
    "interpolate": "np.repeat(np.repeat(x, k, -2), k, -1) for the nearest",
    # random numbers
    "multinomial": _OUTSIDE,
    "normal_": _OUTSIDE,
    "uniform_": _OUTSIDE,
    # like another
    "zeros_like": "np.zeros_like(x)",
    "ones_like": "np.ones_like(x)",
    "full_like": "np.full_like(x, value)",
    "empty_like": "np.empty_like(x)",
    "new_zeros": "xp.zeros(shape, x.dtype)",
    "new_ones": "xp.ones(shape, x.dtype)",
    "new_full": "xp.full(shape, value, x.dtype)",
    "new_empty": "xp.zeros(shape, x.dtype)",
    "new_tensor": "xp.asarray(values, x.dtype)",
}
_SAME = (
    "exp log log2 log10 log1p expm1 exp2 sqrt sin cos tan tanh sinh cosh floor ceil "
    "sign square reciprocal maximum minimum fmax fmin where isnan isinf isfinite trunc "
    "arcsin arccos arctan arcsinh arccosh arctanh arctan2 hypot logaddexp logaddexp2 "
    "logical_and logical_or logical_xor logical_not signbit copysign nextafter "
    "deg2rad rad2deg sinc heaviside isclose bitwise_and bitwise_or bitwise_xor gcd lcm"
)
_RENAMED = {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "atan2": "arctan2",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "negative": "negative",
    "multiply": "multiply",
    "subtract": "subtract",
    "divide": "divide",
    "absolute": "absolute",
}
_OWN = ("sigmoid", "relu", "gelu", "silu", "erf", "erfc", "rsqrt")
_ALL = {
    **_ROWS,
    **{name: f"np.{name}(x)" for name in _SAME.split()},
    **{name: f"np.{numpys}(x)" for name, numpys in _RENAMED.items()},
    **{name: f"nfuser.numpy.{name}(x)" for name in _OWN},
}


def instead(name: str) -> str | None:
    """Return what to write for a name of torch's, if that is known.

    >>> instead("masked_fill"), instead("add_")
    ('np.where(mask, value, x)', 'x = x + y: traced arrays are not written in place')
    """
    found = _ALL.get(name)
    if found is not None or not name.endswith("_") or name.startswith("_"):
        return found
    plain = _ALL.get(name.rstrip("_"), "the new value")
    return f"x = {plain}: traced arrays are not written in place"
