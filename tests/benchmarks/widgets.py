"""How long an explorer takes from a moved slider to a new picture, and from a new text to its picture.

Runs in a Jupyter kernel, with the messages to the browser really sent. Prints the median and the 95th percentile of 200
moves of each explorer's sliders, and of 12 new texts where a neural model reads them. Exits 1 where a slider takes more
than 100 ms at the median or 250 ms at the 95th percentile, or a new text more than 3 s.

    python tests/benchmarks/widgets.py
"""

import sys

MOVES = """
import random, statistics, time
import numpy as np
from tsteval.cps import Cps
from tsteval.evaluation import demonstration_pairs, evaluate
from tsteval.explorers.catalogue import EXPLORERS
from tsteval.explorers.evaluation import evaluation_explorer
from tsteval.explorers.words import bleu_explorer
from tsteval.style import StyleClassifier, load_pairs

def report(name, what, seconds, limits):
    median, late = (1000 * float(np.quantile(seconds, share)) for share in (0.5, 0.95))
    verdict = "ok" if median < limits[0] and late < limits[1] else "TOO SLOW"
    print(f"{name:14}{what:10}{len(seconds):4} times  median {median:7.1f} ms  95% {late:7.1f} ms  {verdict}")

def timed(control, value):
    start = time.perf_counter()
    control.value = value
    return time.perf_counter() - start

def move_sliders(name, explorer, moves=200):
    generator, seconds = random.Random(0), []
    sliders = [control for control in explorer.controls.values() if hasattr(control, "step")]
    while len(seconds) < moves:
        slider = generator.choice(sliders)
        value = slider.min + slider.step * generator.randrange(int((slider.max - slider.min) / slider.step) + 1)
        if slider.layout.display != "none" and value != slider.value:
            seconds.append(timed(slider, value))
            assert explorer.picture.value or explorer.message.value
    report(name, "slider", seconds, (100, 250))

def change_texts(name, explorer, field):
    texts = list(load_pairs().query("split == 'validation'").source[:12])
    seconds = []
    for text in texts:
        explorer.controls[field].value = text
        start = time.perf_counter()
        explorer.redraw(slow=True)
        seconds.append(time.perf_counter() - start)
        explorer._cancel()
        assert not explorer.message.value
    report(name, "new text", seconds, (3000, 3000))

for name in ("bleu", "ngram", "emd", "mask"):
    explorer = EXPLORERS[name]()
    move_sliders(name, explorer)
    explorer.close()
long = bleu_explorer(" ".join(load_pairs().source[:180])[:20_000], " ".join(load_pairs().target[:180])[:20_000])
move_sliders("bleu, 20 kB", long)
pairs, found = demonstration_pairs(StyleClassifier.load())
evaluation = evaluate(pairs, ("bleu", "sti", Cps(attributions=found)))
explorer = evaluation_explorer(evaluation)
move_sliders("evaluation", explorer)
listing = explorer.controls["pair"]
explorer.controls["highest"].value = explorer.controls["highest"].max
report("evaluation", "pair", [timed(listing, value) for _, value in listing.options[1:201]], (100, 250))
for name, field in (("style", "source"), ("mask", "source"), ("fluency", "first")):
    change_texts(name, EXPLORERS[name](), field)
"""


def main() -> int:
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(MOVES)])
    NotebookClient(notebook, timeout=900, kernel_name="python3").execute()
    printed = "".join(
        output.get("text", "")
        for output in notebook.cells[0].outputs
        if output.get("name") == "stdout"
    )
    print(printed, end="")
    return 1 if "TOO SLOW" in printed else 0


if __name__ == "__main__":
    sys.exit(main())
