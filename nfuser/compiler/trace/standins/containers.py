# SPDX-License-Identifier: Apache-2.0
"""Objects that hold arrays and are none: what to pass, or to write, in place of them.

No library is imported to find out: a type tells by the module it was defined in.
"""

from __future__ import annotations

_BY_CLASS = {
    ("pandas", "Series"): "x.to_numpy(), and pd.Series(result, x.index) after the call",
    ("pandas", "DataFrame"): "df.to_numpy(), or a column: df['name'].to_numpy()",
    ("pandas", "Index"): "x.to_numpy()",
    ("xarray", "DataArray"): "x.data, or call xarray.apply_ufunc(f, x)",
    ("xarray", "Variable"): "x.data",
    ("xarray", "Dataset"): "the array of a variable, ds['name'].data",
    ("dask", "Array"): "x.compute(), or call dask.array.map_blocks(f, x)",
    ("dask", "Delayed"): "x.compute(), or call dask.delayed(f)(x)",
    ("dask", "Series"): "x.to_dask_array() by dask.array.map_blocks(f, ...)",
    ("dask", "DataFrame"): "df.to_dask_array() by dask.array.map_blocks(f, ...)",
    ("distributed", "Future"): "x.result(), or call client.submit(f, x)",
}
_BY_MODULE = {
    "pandas": "x.to_numpy()",
    "polars": "x.to_numpy()",
    "pyarrow": "x.to_numpy(zero_copy_only=False)",
    "tensorflow": "x.numpy()",
    "h5py": "x[...], which reads it",
    "zarr": "x[...], which reads it",
    "netCDF4": "x[...], which reads it",
    "scipy": "x.toarray()",
    "cudf": "x.to_cupy()",
    "PIL": "np.asarray(x)",
    "array": "np.asarray(x), which shares the memory",
}
_BUFFERS = {memoryview: "np.asarray(x), which shares the memory"}


def array_in(kind: type[object]) -> str | None:
    """Return what gives the array in an object of this kind; None for other kinds.

    >>> array_in(memoryview), array_in(dict)
    ('np.asarray(x), which shares the memory', None)
    """
    if kind in _BUFFERS:
        return _BUFFERS[kind]
    for base in kind.__mro__:
        top = base.__module__.partition(".")[0]
        if top == "scipy" and not base.__module__.startswith("scipy.sparse"):
            continue
        if found := _BY_CLASS.get((top, base.__name__)):
            return found
        if (found := _BY_MODULE.get(top)) and _holds_elements(base):
            return found
    return None


def _holds_elements(kind: type[object]) -> bool:
    names = ("__array__", "__array_interface__", "__getitem__", "toarray")
    return any(hasattr(kind, name) for name in names)
