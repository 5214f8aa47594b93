"""The walks of CONTRIBUTING.md: each is made in a copy of the repository, touches as many files as it says, and
works."""
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PARTS = ("nbs", "tsteval", "tests", "settings.ini", "setup.py", "CHANGELOG.md", "CONTRIBUTING.md", "README.md",
         ".importlinter")


@pytest.fixture
def copy(tmp_path):
    ignored = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "*.safetensors.tmp", ".hypothesis")
    for name in PARTS:
        if (ROOT / name).is_dir(): shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
        else: shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def promised(what):
    """How many files a walk says that it touches."""
    words = {"three": 3, "four": 4, "five": 5}
    return words[re.search(rf"^## Add a {what}: (\w+)", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"),
                           re.M)[1]]


def touched(folder):
    """Source files that differ from the repository's: modules that notebooks export do not count, nor does a folder's
    content twice."""
    found = set()
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if not path.is_file() or {"__pycache__", ".pytest_cache", ".hypothesis"} & set(name.parts): continue
        if name.name == "_modidx.py": continue
        if name.parts[0] == "tsteval" and path.suffix == ".py" and path.name != "__init__.py": continue
        if (ROOT / name).is_file() and (ROOT / name).read_bytes() == path.read_bytes(): continue
        found.add(str(Path(*name.parts[:3])) if name.parts[:2] == ("tsteval", "data") else str(name))
    return found


def run(folder, *words):
    done = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout


def export(folder): run(folder, "-c", "from nbdev.doclinks import nbdev_export; nbdev_export()")


def change(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, (path.name, old, text.count(old))
    path.write_text(text.replace(old, new), encoding="utf-8")


def note(folder, line): change(folder / "CHANGELOG.md", "# Changelog\n", f"# Changelog\n\n- {line}\n")


def notebook(*cells):
    """A notebook of ("markdown" or "code", text) cells."""
    made = [{"cell_type": kind, "id": f"cell{number}", "metadata": {}, "source": text.splitlines(keepends=True)}
            | ({"execution_count": None, "outputs": []} if kind == "code" else {}) for number,
            (kind, text) in enumerate(cells)]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)


METRIC = """#| export
def _score_share(table, models):
    from tsteval.core.metric import Scores, sign
    words = [table[side].map(lambda text: len(tokenize(text))) for side in ("output", "source")]
    share = words[0] / words[1].clip(lower=1)
    return Scores(pd.DataFrame({"word_share": share}), signature=sign("word_share"))


word_share_metric = Metric("word_share", ("source", "output"), ("word_share",), _score_share, better="neither",
                           description="words of the output for each word of the source")"""


@pytest.mark.slow
def test_a_metric(copy):
    chapter = copy / "nbs" / "01_text.ipynb"
    content = json.loads(chapter.read_text(encoding="utf-8"))
    imports = "#| export\nimport pandas as pd\n\nfrom tsteval.core.metric import Metric"
    content["cells"] += json.loads(notebook(("markdown", "How many words stay."), ("code", imports),
                                            ("code", METRIC)))["cells"]
    chapter.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    change(copy / "nbs" / "core" / "metric.ipynb", r'''    \"rouge\": \"tsteval.rouge:rouge_metric\",\n",''',
           r'''    \"rouge\": \"tsteval.rouge:rouge_metric\",\n",
    "    \"word_share\": \"tsteval.text:word_share_metric\",\n",''')
    tests = copy / "tests" / "test_text.py"
    tests.write_text(tests.read_text(encoding="utf-8") + """

def test_the_share_of_words():
    from tsteval.evaluation import evaluate
    rows = [{"source": "a b c d", "output": "a b"}, {"source": "a b", "output": "a b"}]
    result = evaluate(rows, ["word_share"], n_boot=5)
    assert result.per_pair.word_share.tolist() == [0.5, 1.0] and "word_share" in result.render_html()
""", encoding="utf-8")
    note(copy, "A metric of words.")
    export(copy)
    assert "1 passed" in run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_text.py", "-k",
                             "share_of_words")
    assert "word_share" in run(copy, "-m", "tsteval", "metrics")
    assert len(touched(copy)) == promised("metric"), touched(copy)


@pytest.mark.slow
def test_a_model(copy):
    shutil.copytree(copy / "tsteval" / "data" / "sentiment-minilm", copy / "tsteval" / "data" / "mood-minilm")
    (copy / "nbs" / "making" / "mood_model.py").write_text('"""Makes mood-minilm."""\n', encoding="utf-8")
    note(copy, "A model of moods.")
    line = ("from tsteval.style import StyleClassifier; model = StyleClassifier.load('mood-minilm'); "
            "print(model.name, model.labels)")
    assert run(copy, "-c", line).startswith("mood-minilm")
    assert len(touched(copy)) == promised("model"), touched(copy)


CHAPTER = (("markdown", "# Words that stay\n\n> Which words stay\n\nA question."), ("code", "#| default_exp staying"),
           ("markdown", "The words that two texts share."),
           ("code", "#| export\nfrom tsteval.text import tokenize\n\n\ndef shared_words(source: str, output: str) -> "
                    "set:\n"
                    '    """The words that both texts have."""\n    return set(tokenize(source)) & '
                    'set(tokenize(output))'),
           ("markdown", "## Summary\n\nThey stay.\n\n## Exercises\n\nOne. "
                        "[Solutions](solutions/25_staying.ipynb)\n\n## References\n\nNone."))


@pytest.mark.slow
def test_a_chapter(copy):
    (copy / "nbs" / "25_staying.ipynb").write_text(notebook(*CHAPTER), encoding="utf-8")
    solutions = notebook(("markdown", "# Solutions"), ("code", "from tsteval.staying import shared_words\n\n"
                                                              'assert shared_words("a b", "b c") == {"b"}'))
    (copy / "nbs" / "solutions" / "25_staying.ipynb").write_text(solutions, encoding="utf-8")
    (copy / "tests" / "test_staying.py").write_text('''"""Words that stay."""
import tsteval


def test_shared_words():
    assert tsteval.staying.shared_words("a b", "b c") == {"b"}
''', encoding="utf-8")
    note(copy, "A chapter on words that stay.")
    export(copy)
    run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_staying.py", "tests/test_architecture.py",
        "-k",
        "shared_words or staying or circle or beneath_the_chapters")
    run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_notebooks.py", "-k",
        "25_staying and (sitting or summary or links)")
    assert len(touched(copy)) == promised("chapter"), touched(copy)


COMMAND = (("markdown", "# tsteval words\n\n> `tsteval words`: counts words\n\nHow many words."),
           ("code", "#| default_exp cli.words"), ("markdown", "One option."),
           ("code", """#| export
from argparse import Namespace
from dataclasses import dataclass

from tsteval.cli.app import Command, chosen, option, options_of


@dataclass(frozen=True)
class _Words:
    text: str = option("what to count", metavar="TEXT", flags=(), required=True)
    twice: bool = option("count twice", False)


def _run(arguments: Namespace) -> int:
    words = chosen(_Words, arguments)
    print(len(words.text.split()) * (1 + words.twice))
    return 0


words_command = Command(_run, options_of(_Words), "Count words.")"""))


@pytest.mark.slow
def test_a_command(copy):
    (copy / "nbs" / "cli" / "words.ipynb").write_text(notebook(*COMMAND), encoding="utf-8")
    (copy / "tests" / "cli" / "test_words.py").write_text('''"""`tsteval words`."""
from tsteval.cli import main


def test_words_are_counted(capsys):
    assert main(["words", "a b", "--twice"]) == 0 and capsys.readouterr().out == "4\\n"
''', encoding="utf-8")
    note(copy, "A command that counts words.")
    export(copy)
    run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/cli/test_words.py")
    assert "counts words" in run(copy, "-m", "tsteval", "--help")
    assert run(copy, "-m", "tsteval", "words", "a b") == "2\n"
    assert len(touched(copy)) == promised("command"), touched(copy)
