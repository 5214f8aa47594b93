"""`tsteval metrics` lists the metrics, `tsteval doctor` looks at the machine, `tsteval fetch` fills the cache"""

import importlib.util
import math
import os
import platform
import shutil
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from ..core.assets import ASSETS, Asset, AssetError, cache_folder, corpora
from ..core.checks import InputError, meant
from ..core.fetch import fetch_asset, fetch_corpus
from ..core.metric import METRICS, QUESTIONS, Metric, described, find_metric, split_list
from ..core.pretrained import hub_reachable
from ..core.version import __version__
from ..report.evidence import not_shown, people_lines
from ..report.terminal import say
from .app import Command, option, options_of
from .costs import metric_seconds


def _ends(metric: type[Metric] | Metric) -> str:
    """Between which numbers a metric's scores lie."""
    low, high = metric.range or (-math.inf, math.inf)
    lowest = "no lowest" if math.isinf(low) else f"{low:g}"
    highest = "no highest" if math.isinf(high) else f"{high:g}"
    return f"from {lowest} to {highest}"


def _people(metric: Metric | None) -> list[str]:
    """What is known of a metric beside people, and whether that is enough for a verdict."""
    if metric is None:
        return ["people: not held beside people as it stands: an option must be chosen"]
    why = not_shown(metric, metric.columns[0])
    verdict = (
        f"no verdict: values and intervals only, since it {why}"
        if why
        else "verdict: may call a system better, since on one set its lead holds when all that was tried is counted"
    )
    return [*(f"people: {line}" for line in people_lines(metric)), verdict]


def _default(metric: type[Metric]) -> Metric | None:
    try:
        return metric()
    except InputError:  # an option has no default, such as what a judge is asked
        return None


@dataclass(frozen=True)
class _Listed:
    names: tuple[str, ...] = option(
        "a metric, perhaps with options as in bleu:smoothing=floor; none: all",
        (),
        "NAME",
        flags=(),
    )


def _metrics(arguments: Namespace) -> int:
    names = [name for text in arguments.names or () for name in split_list(text)]
    chosen = [METRICS[name] if name in METRICS else find_metric(name) for name in names]
    listed = chosen or [METRICS[name] for name in METRICS]
    seconds_by_name = metric_seconds()
    for metric in listed:
        seconds = seconds_by_name.get(metric.name) or "unknown"  # a new one has none yet
        known = metric if isinstance(metric, Metric) else _default(metric)
        people = "".join(f"\n    {line}" for line in _people(known))
        options = (
            ", ".join(
                f"{option}={getattr(known, option, default)!r}"
                for option, default in metric.options().items()
            )
            or "none"
        )
        say(
            f"{metric.name}: {described(metric)}\n    answers {metric.question or 'a question of its own'}; needs "
            f"{', '.join(metric.needs)}; writes {', '.join(metric.columns)}; better: {metric.better}"
            f"\n    {_ends(metric)}; for a thousand rows {seconds} s of one processor core"
            f"{people}\n    options: {options}"
        )
    if not chosen:
        say(f"--metrics takes names and groups: {', '.join(QUESTIONS)}.")
    return 0


metrics_command = Command(_metrics, options_of(_Listed))

_EXTRAS = {
    "course": ("jupyterlab", "ipywidgets", "voila"),
    "properties": ("spacy",),
    "ray": ("ray",),
}
_LIBRARIES = ("numpy", "pandas", "torch", "transformers")


def _installed() -> Iterator[tuple[str, str, str]]:
    yield "tsteval", __version__, ""
    yield "Python", platform.python_version(), ""
    for name in _LIBRARIES:
        try:
            yield name, metadata.version(name), ""
        except metadata.PackageNotFoundError:
            yield name, "missing", "pip install tsteval"
    for extra, modules in _EXTRAS.items():
        lacking = [module for module in modules if importlib.util.find_spec(module) is None]
        yield (
            f"extra {extra}",
            f"lacks {', '.join(lacking)}" if lacking else "installed",
            f"pip install 'tsteval[{extra}]'" if lacking else "",
        )


def _device() -> tuple[str, str, str]:
    if importlib.util.find_spec("torch") is None:
        return "device", "unknown without torch", ""
    from tsteval.models.base import find_device

    return "device", f"{find_device()}, {os.cpu_count()} processors", ""


def _forms(asset: Asset) -> str:
    """In which forms a model lies in the cache, where there are two."""
    if not asset.gguf_file:
        return ""
    unpacked = asset.unpacked_folder.is_dir()
    return (
        f": packed as llama.cpp reads it, {asset.size / 1e6:,.0f} MB; unpacked for this package, "
        f"{asset.unpacked_size / 1e6:,.0f} MB{'' if unpacked else ', on first use'}"
    )


def _not_fetched(asset: Asset) -> str:
    size = f"{asset.size / 1e6:,.0f} MB"
    if asset.gguf_file:
        size = f"{size}, and {asset.unpacked_size / 1e6:,.0f} MB more when unpacked"
    kept = len([*asset.kept_wheels.glob("*.whl")])
    if kept:
        return f"{kept} of {len(asset.wheels)} wheels fetched (all: {size})"
    return f"not fetched ({size})"


def _cached() -> Iterator[tuple[str, str, str]]:
    root = cache_folder()
    above = next(place for place in (root, *root.parents) if place.is_dir())
    writable = os.access(above, os.W_OK)
    yield (
        "cache",
        f"{root}, {shutil.disk_usage(above).free / 1e9:.1f} GB free"
        + ("" if writable else ", read-only"),
        "" if writable else "set TSTEVAL_CACHE to a folder that can be written to",
    )
    for asset in ASSETS.values():
        there = asset.folder.is_dir()
        yield (
            asset.name,
            f"in the cache{_forms(asset)}" if there else _not_fetched(asset),
            "" if there else f"tsteval fetch {asset.name}",
        )
    own = os.environ.get("TSTEVAL_DATA")
    for name, corpus in corpora().items():
        places = [*([Path(own) / name] if own else []), root / "corpora" / name]
        there = next((place for place in places if place.is_dir()), None)
        yield (
            name,
            f"in {there.parent}" if there else "not on this machine",
            "" if there else f"tsteval fetch {name}" if corpus.base_url else corpus.get_it,
        )


def _reachable() -> Iterator[tuple[str, str, str]]:
    asset = next(iter(ASSETS.values()))
    command = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--timeout",
        "3",
        "--retries",
        "0",
        "index",
        "versions",
        asset.distribution,
    ]
    answers = (
        subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, check=False
        ).returncode
        == 0
    )
    yield (
        "package index",
        "answers" if answers else "does not answer",
        ""
        if answers
        else "embedded models come from it: look at `pip config list`, or copy another machine's cache",
    )
    hub = hub_reachable()
    yield (
        "Hugging Face hub",
        "answers" if hub else "does not answer",
        "" if hub else "only models by their hub's id need it; embedded models and folders work",
    )


def _doctor(arguments: Namespace) -> int:
    from tsteval.report.terminal import aligned

    rows = [*_installed(), _device(), *_cached(), *_reachable()]
    say(
        aligned(
            [
                ["", *(name for name, *_ in rows)],
                ["found", *(status for _, status, _ in rows)],
                ["what to do", *(remedy for *_, remedy in rows)],
            ]
        )
    )
    return 0


doctor_command = Command(
    _doctor,
    description="Say what is installed, cached and reachable, which device is used, and "
    "what to do about what is missing.",
)


@dataclass(frozen=True)
class _Fetch:
    name: str = option(
        f"all, {', '.join(ASSETS)}, or a corpus", metavar="NAME", flags=(), required=True
    )


def _fetch(arguments: Namespace) -> int:
    all_corpora = corpora()
    failed = 0
    everything = [*ASSETS, *(name for name, corpus in all_corpora.items() if corpus.base_url)]
    for name in everything if arguments.name == "all" else [arguments.name]:
        if name not in ASSETS and name not in all_corpora:
            raise InputError(
                f"there is nothing called {name!r} to fetch{meant(name, [*ASSETS, *all_corpora])}; choose all, "
                f"{', '.join([*ASSETS, *all_corpora])}"
            )
        try:
            folder = fetch_asset(name) if name in ASSETS else fetch_corpus(name)
            say(f"{name}: {folder}{_forms(ASSETS[name]) if name in ASSETS else ''}")
        except AssetError as error:
            failed += 1
            say(f"tsteval: error: {error}", file=sys.stderr)
    return 2 if failed else 0


fetch_command = Command(_fetch, options_of(_Fetch))
