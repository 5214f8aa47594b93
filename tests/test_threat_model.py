"""The page on safety: every test that it names is there, and code in a model's folder is never run."""

import json
import re
from pathlib import Path

import pytest

from tsteval.core.assets import AssetError
from tsteval.core.checks import InputError
from tsteval.cps import SentenceEncoder
from tsteval.fluency import CausalLM
from tsteval.style import StyleClassifier

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "SECURITY.md"


def test_every_promise_names_tests_that_are_there():
    text = PAGE.read_text(encoding="utf-8")
    promises = [line for line in text.splitlines() if line.startswith("|")][2:]
    assert promises and len(text.split()) < 750  # a page of one screen
    for line in promises:
        named = re.findall(r"`([\w/]+\.py)::(\w+)`", line.split("|")[3])
        assert named, line
        for file, test in named:
            assert f"def {test}(" in (TESTS / file).read_text(encoding="utf-8"), (
                f"{file} has no test {test}"
            )


@pytest.mark.parametrize("load", [StyleClassifier.load, SentenceEncoder.load, CausalLM.load])
def test_code_in_a_model_folder_is_never_run(load, tmp_path):
    folder = tmp_path / "model"
    marker = tmp_path / "ran"
    folder.mkdir()
    code = f"from pathlib import Path\nPath({str(marker)!r}).write_text('ran')\nclass Own: pass\n"
    for name in ("modeling_own.py", "configuration_own.py", "tokenization_own.py"):
        (folder / name).write_text(code)
    autos = {
        "AutoConfig": "configuration_own.Own",
        **dict.fromkeys(
            ("AutoModel", "AutoModelForCausalLM", "AutoModelForSequenceClassification"),
            "modeling_own.Own",
        ),
    }
    (folder / "config.json").write_text(
        json.dumps({"model_type": "own", "auto_map": autos, "architectures": ["Own"]})
    )
    (folder / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "tokenizer_class": "Own",
                "auto_map": {"AutoTokenizer": ["tokenization_own.Own", None]},
            }
        )
    )
    (folder / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    with pytest.raises((AssetError, InputError)):
        load(str(folder))
    assert not marker.exists()
