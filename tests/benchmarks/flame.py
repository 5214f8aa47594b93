"""Where the time goes, as pictures: each writes the picture named after it into this folder.

    python tests/benchmarks/flame.py [evaluation] [content] [language_model]

A box is a function, as wide as the share of the time in which it ran; what it called stands on it. Sampled every ten
milliseconds by pyinstrument (`pip install pyinstrument`), once the models are warm; take it on an idle machine.
Functions below 1.5% of the whole are left out; of other packages only what the project calls is drawn.
"""

import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
from pyinstrument import Profiler

matplotlib.use("svg")
HERE = Path(__file__).parent
LEAST = 0.015
OURS, THEIRS = "#9ecae1", "#dddddd"


def evaluation():
    import evaluation as benchmark

    rows = benchmark.rows_of(30)
    return lambda: benchmark.ours(rows)


def content():
    from tsteval.content import style_aware_content
    from tsteval.tables.pairs import load_contrasts

    table = load_contrasts().iloc[::11]
    return lambda: style_aware_content(
        list(table.source), list(table.style_only), list(table["style"])
    )


def language_model():
    from tsteval.models.causal_lm import CausalLM
    from tsteval.tables.pairs import load_pairs

    texts = [*load_pairs().source[:400]]
    model = CausalLM.load()
    return lambda: model.token_logprobs(texts)


def name_of(frame) -> str | None:
    """room.function for the project's own, library.function for others, None for what is not drawn."""
    path = Path(frame.file_path or "")
    if "tsteval" in path.parts:
        return f"{path.stem}.{frame.function}"
    parts = (
        path.parts[path.parts.index("site-packages") + 1 :]
        if "site-packages" in path.parts
        else path.parts[-1:]
    )
    return f"{parts[0]}: {frame.function}" if parts else None


def boxes(frame, level: int, start: float, total: float, own_parent: bool = True):
    """(level, start, width, name, is ours) of a frame and of all on it; a library's inner calls are not followed."""
    width = frame.time / total
    name = name_of(frame)
    ours = "tsteval" in Path(frame.file_path or "").parts
    shown = bool(name) and (ours or own_parent) and not frame.function.startswith("<")
    if width < LEAST:
        return
    if shown:
        yield level, start, width, name, ours
    for child in frame.children:
        yield from boxes(child, level + shown, start, total, ours)
        start += child.time / total


def draw(found, path: Path, seconds: float) -> None:
    levels = 1 + max(level for level, *_ in found)
    figure, axes = plt.subplots(figsize=(11, 0.34 * levels + 0.7))
    for level, start, width, name, ours in found:
        axes.barh(
            level, width, left=start, height=0.94, color=OURS if ours else THEIRS, edgecolor="white"
        )
        room = int(width * 105)  # letters that fit
        label = f"{name} {width:.0%}"
        if room > 6:
            axes.text(
                start + width / 2,
                level,
                label if len(label) <= room else label[: room - 1] + "…",
                ha="center",
                va="center",
                fontsize=10,
            )
    axes.set(
        xlim=(0, 1),
        yticks=[],
        xlabel=f"share of {seconds:.1f} s; blue: this project, grey: libraries",
    )
    axes.xaxis.set_major_formatter("{x:.0%}")
    for side in ("top", "left", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


if __name__ == "__main__":
    known = {prepare.__name__: prepare for prepare in (evaluation, content, language_model)}
    for what in sys.argv[1:] or known:
        run = known[what]()
        run()  # warm
        with Profiler(interval=0.01, async_mode="disabled") as profiler:
            run()
        root = profiler.last_session.root_frame()
        draw(list(boxes(root, 0, 0.0, root.time)), HERE / f"flame_{what}.svg", root.time)
        print(profiler.output_text(show_all=False)[:3000])
