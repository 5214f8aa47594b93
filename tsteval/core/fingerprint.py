"""A checksum of a function or object, over all that its behaviour follows from, and whether that is all"""

import builtins
import copyreg
import dis
import functools
import hashlib
import importlib
import inspect
import sys
import types
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from .files import known_sha256


def _library(
    name: str | None,  # of a module
) -> str | None:  # the library it belongs to, with its version; None: somebody's own code
    top = (name or "").partition(".")[0]
    if top in sys.stdlib_module_names:
        return f"python {sys.version_info[0]}.{sys.version_info[1]}"
    place = getattr(sys.modules.get(name or ""), "__file__", None) or ""
    if top != "tsteval" and not {"site-packages", "dist-packages"} & set(Path(place).parts):
        return None
    return f"{top} {getattr(sys.modules.get(top), '__version__', '')}"


_UNTOLD = {"eval", "exec", "compile", "globals", "locals", "vars", "__import__", "open", "input"}


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function and of those written inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _instructions(code: types.CodeType) -> Iterator[bytes | str]:
    """What it does, with the names and constants that it uses."""
    for part in _codes(code):
        yield part.co_code
        yield " ".join(part.co_names)
        for constant in part.co_consts:
            if isinstance(constant, frozenset):
                yield repr(sorted(map(repr, constant)))
            elif not isinstance(constant, types.CodeType):
                yield repr(constant)


def _reads(code: types.CodeType) -> Iterator[tuple[str, list[str]]]:
    """Each global name that is read, with the attributes that follow it."""
    for part in _codes(code):
        steps = list(dis.get_instructions(part))
        for place, step in enumerate(steps):
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                path = []
                for after in steps[place + 1 :]:
                    if after.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
                        break
                    path.append(after.argval)
                yield step.argval, path


def _imports(code: types.CodeType) -> Iterator[str]:
    for part in _codes(code):
        yield from (
            step.argval for step in dis.get_instructions(part) if step.opname == "IMPORT_NAME"
        )


def _writes(code: types.CodeType) -> bool:
    return any(
        step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL")
        for part in _codes(code)
        for step in dis.get_instructions(part)
    )


_MOST = 300_000  # values that are looked at; who holds more is not described
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...))
_METHODS = types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType
_DESCRIPTORS = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
)
_OUTSIDE = {
    "__module__",
    "__dict__",
    "__weakref__",
    "__doc__",
    "__annotations__",
    "__annotate_func__",
    "__annotations_cache__",
    "__slotnames__",
    "__firstlineno__",
    "__static_attributes__",
    "_abc_impl",
}


class _Walk:
    """A checksum over a value and all that it is made of."""

    def __init__(self):
        self.sum = hashlib.sha256()
        self.whole = True
        self.left = _MOST
        self.met: dict[
            int, tuple[int, Any]
        ] = {}  # with the value itself, lest another one gets its number

    def write(self, *parts: bytes | str) -> None:
        for part in parts:
            content = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
            self.sum.update(len(content).to_bytes(8, "big") + content)

    def all(self, values) -> None:
        for value in values:
            self.value(value)

    def value(self, value: Any) -> None:
        self.left -= 1
        if self.left < 0:
            self.whole = False
        elif type(value) in _PLAIN:
            self.write(f"{type(value).__name__} {value!r}")
        elif id(value) in self.met:
            self.write(f"met {self.met[id(value)][0]}")
        else:
            self.met[id(value)] = len(self.met), value
            tag = inspect.getattr_static(value, "tag", None)
            if tag is not None and isinstance(tag := getattr(value, "tag", None), str):
                self.write("tag", tag)
            else:
                self._road(value)(value)

    def _road(self, value: Any):
        if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
            return self._series
        for kind, road in (
            (dict, self._table),
            (types.MappingProxyType, self._table),
            (set, self._heap),
            (frozenset, self._heap),
            (np.ndarray, self._array),
            (types.FunctionType, self._function),
            (types.ModuleType, self._module),
            (types.CodeType, self._code),
        ):
            if type(value) is kind:
                return road
        if isinstance(value, type):
            return self._class
        if isinstance(value, _METHODS):
            return self._method
        return self._named if isinstance(value, _DESCRIPTORS) else self._object

    def _series(self, value) -> None:
        self.write(type(value).__name__, str(len(value)))
        self.all(value)

    def _table(self, value) -> None:
        self.write("dict", str(len(value)))
        for key, cell in value.items():
            self.all((key, cell))

    def _heap(self, value) -> None:
        found = [fingerprint(one) for one in value]
        self.whole &= all(whole for _, whole in found)
        self.write("set", *sorted(text for text, _ in found))

    def _array(self, value) -> None:
        self.write("array", value.dtype.str, str(value.shape))
        if value.dtype.hasobject:
            self.all(value.ravel().tolist())
        else:
            self.write(np.ascontiguousarray(value).tobytes())

    def _code(self, value) -> None:
        self.write(*_instructions(value))

    def _named(self, value) -> None:
        self.write(f"{value.__objclass__.__module__}.{value.__qualname__}")

    def _method(self, value) -> None:
        self.write(value.__qualname__)
        owner = value.__self__
        self.whole &= value.__name__ not in _UNTOLD or value.__module__ not in (
            "builtins",
            "io",
            "_io",
        )
        self.all(
            [
                getattr(value, "__func__", None),
                None if isinstance(owner, types.ModuleType) else owner,
            ]
        )
        self.write(_library(value.__module__) or "")

    def _module(self, value) -> None:
        library = _library(value.__name__)
        self.write("module", value.__name__, library or "")
        if library is None:
            if file := getattr(value, "__file__", None):
                self.write(known_sha256(file))
            self.all(part for name, part in vars(value).items() if not name.startswith("__"))

    def _function(self, function) -> None:
        code = function.__code__
        space = function.__globals__
        library = _library(function.__module__)
        self.write("function", function.__qualname__, library or "", *_instructions(code))
        self.all(_contents(cell) for cell in function.__closure__ or ())
        self.all([function.__defaults__, function.__kwdefaults__])
        self.all(value for name, value in sorted(vars(function).items()) if name != "__wrapped__")
        if library is not None:
            return
        self.whole &= not _writes(code)
        for name, path in sorted({(name, tuple(path)) for name, path in _reads(code)}):
            self._global(space, name, path)
        for name in sorted(set(_imports(code))):
            self._imported(space.get("__package__") or "", name)

    def _global(self, space: dict, name: str, path: tuple[str, ...]) -> None:
        value = space.get(name)
        # a notebook has an `open` of its own
        self.whole &= name not in _UNTOLD or (
            isinstance(value, types.FunctionType) and not _library(value.__module__)
        )
        if name not in space:
            self.whole &= hasattr(builtins, name)
            return self.write("builtin", name)
        self.write("global", name)
        for (
            step
        ) in path:  # as long as it leads through modules, what else is in them does not matter
            if not isinstance(value, types.ModuleType) or not hasattr(value, step):
                break
            self.write(step)
            if library := _library(value.__name__):
                return self.write(library)
            value = getattr(value, step)
        return self.value(value)

    def _imported(self, package: str, name: str) -> None:
        for place in filter(None, (name, f"{package}.{name}".strip("."))):
            try:
                return self._module(importlib.import_module(place))
            except Exception:
                continue  # it may be relative, or not there; whatever an import raises, it tells nothing
        self.whole = False
        return self.write("import", name)

    def _class(self, value) -> None:
        library = _library(value.__module__)
        self.write("class", value.__qualname__, library or value.__module__)
        if library is not None:
            return
        self.all(value.__bases__)
        for name, part in sorted(vars(value).items()):
            if name in _OUTSIDE or isinstance(
                part, (types.MemberDescriptorType, types.GetSetDescriptorType)
            ):
                continue
            self.write(name)
            if isinstance(part, (classmethod, staticmethod)):
                part = part.__func__  # noqa: PLW2901
            if isinstance(part, property):
                self.all((part.fget, part.fset))
            elif isinstance(part, functools.cached_property):
                self.value(part.func)
            else:
                self.value(part)

    def _object(self, value) -> None:
        self.value(type(value))
        inside = getattr(value, "__wrapped__", None)  # such as that of functools.cache
        if callable(inside):
            return self.value(inside)
        try:
            made = copyreg.dispatch_table.get(type(value), lambda value: value.__reduce_ex__(4))(
                value
            )
        except Exception:  # each class has a reason of its own not to be pickled
            self.whole = False
            return None
        if isinstance(made, str):
            return self.write(made, _library(getattr(value, "__module__", None)) or "")
        return self.all(
            list(islice(part, _MOST)) if isinstance(part, Iterator) else part for part in made
        )


def _contents(cell) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None  # of a name that is not bound yet


def fingerprint(
    value: Any,  # a function, an object, or a container of such
) -> tuple[str, bool]:  # 64 hexadecimal digits, and whether nothing was left out of them
    """A checksum that changes when what a value does may have changed, and stays while it has not."""
    walk = _Walk()
    try:
        walk.value(value)
    except RecursionError:
        return hashlib.sha256(b"deep").hexdigest(), False
    return walk.sum.hexdigest(), walk.whole
