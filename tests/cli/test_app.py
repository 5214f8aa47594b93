"""The command's entry: help, mistakes in one line with status 2, pipes, completion."""

import argparse
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.conftest import command, refused, run, systems, write
from tsteval import __version__
from tsteval.cli.app import (
    Printing,
    add_options,
    chosen,
    literal,
    option,
    options_of,
)
from tsteval.core.assets import packaged_path
from tsteval.core.checks import InputError, meant
from tsteval.runs.settings import Settings, list_settings


def test_version_and_help(folder):
    code = "import sys; from tsteval.cli import main; sys.argv[0] = 'tsteval'; main()"
    version = subprocess.run(
        [sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=False
    )
    assert version.stdout == f"tsteval {__version__}\n" and version.returncode == 0
    for words in (["--help"], ["evaluate", "--help"], ["course", "--help"], ["fetch", "--help"]):
        assert (
            subprocess.run(
                [sys.executable, "-c", code, *words], capture_output=True, check=False
            ).returncode
            == 0
        )


def test_no_command_is_an_error(folder, capsys):
    refused(capsys, folder, words=["COMMAND"])


def test_interrupt(folder, capsys, monkeypatch):
    monkeypatch.setattr(
        "tsteval.cli.request.open_table", lambda *options: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    status, _out, err = run(capsys, "evaluate", write("pairs.csv"))
    assert status == 130 and "stopped" in err and not Path("tsteval-results").exists()


def test_a_console_without_the_letters_gets_question_marks(folder):
    write("pairs.csv", systems("最終", "naïve"))
    done = command("evaluate", "pairs.csv", "--metrics", "rouge", "--quiet", encoding="cp1252")
    assert done.returncode == 0 and "??" in done.stdout and "Traceback" not in done.stderr, (
        done.stderr
    )
    done = command("evaluate", "pairs.csv", "--system", "無", encoding="ascii")
    assert done.returncode == 2 and "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_closed_pipe_ends_the_command_without_a_word(folder):
    write("pairs.csv", systems("one", "two"))
    for arguments in (
        ["evaluate", "pairs.csv", "--metrics", "rouge", "--quiet"],
        ["metrics"],
        ["evaluate", "--help"],
        ["--completion", "zsh"],
    ):
        done = command(*arguments, shell="| (sleep 0; exec 0<&-; true); echo ${PIPESTATUS[0]}")
        # 0 where all was written before the pipe was closed
        assert done.stdout in ("141\n", "0\n") and done.stderr == "", (arguments, done)
    reader = (
        "import os, subprocess, sys; r, w = os.pipe(); os.close(r); sys.exit(subprocess.run(sys.argv[1:], "
        "stdout=w).returncode)"
    )
    line = "from tsteval.cli import main; import sys; sys.exit(main())"
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            reader,
            sys.executable,
            "-c",
            line,
            "evaluate",
            "pairs.csv",
            "--metrics",
            "rouge",
            "--quiet",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (
        done.returncode == 141
        and done.stderr == ""
        and Path("tsteval-results/report.html").is_file()
    )


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["evaluate", "--colour"], ["--colour", "tsteval evaluate --help"]),
        (["fetch", "a", "b"], ["b is too much", "tsteval fetch --help"]),
        (["evaluate", "pairs.csv", "--metrics", "bleu", "rouge"], ["rouge is too much", "comma"]),
        (["evaluate", ""], ["the argument after evaluate is empty"]),
        (["evaluate", "pairs.csv", "--output", ""], ["the argument after --output is empty"]),
        (["evaluate", "pairs.csv", "--metrics="], ["nothing stands after --metrics="]),
        (
            ["evaluate", "pairs.csv", "--n-boot", "99999999999"],
            ["--n-boot must be a whole number of at least 1 and at most 1000000"],
        ),
        (
            ["evaluate", "pairs.csv", "--engine", "local", "--block-rows", "0"],
            ["--block-rows must be a whole number of at least 1"],
        ),
        (
            ["evaluate", "pairs.csv", "--engine", "ray", "--workers", "0"],
            ["--workers must be a whole number of at least 1"],
        ),
        (["explore", "--port", "99999"], ["--port", "65535"]),
        (["course", "--port", "0"], ["--port"]),
        (["--citation", "ris"], ["bibtex"]),
    ],
)
def test_help_is_that_of_the_sub_command_and_ports_have_a_range(folder, capsys, arguments, words):
    refused(capsys, folder, *arguments, words=words)


@pytest.mark.parametrize("style", ["text", "bibtex"])
def test_a_citation_comes_from_the_file(capsys, style):
    import yaml

    facts = yaml.safe_load(packaged_path("CITATION.cff").read_text())
    status, out, _err = run(capsys, "--citation", style)
    assert (
        status == 0
        and facts["title"] in out
        and str(facts["version"]) in out
        and facts["authors"][0]["name"] in out
        and "2026" in out
    )
    assert out.startswith("@software{") == (style == "bibtex") and out.count("{") == out.count("}")
    assert (
        packaged_path("CITATION.cff").read_bytes()
        == (Path(__file__).parents[2] / "CITATION.cff").read_bytes()
    )


@pytest.mark.slow
def test_a_shell_completes_the_command(folder):
    write("pairs.csv")
    script = command("--completion", "bash").stdout
    Path("complete.bash").write_text(
        script + '\nask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shtab_tsteval; echo '
        '"${COMPREPLY[@]}"; }\n'
    )

    def ask(words):
        return subprocess.run(
            ["bash", "-c", f"source ./complete.bash; ask {words}"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout.split()

    assert (
        ask("tsteval ev") == ["evaluate"]
        and ask("tsteval evaluate --form") == ["--format"]
        and ask("tsteval evaluate pai") == ["pairs.csv"]
    )
    assert ask("tsteval evaluate --format ''") == ["text", "markdown", "latex", "json", "csv"]
    for shell, word in (("zsh", "--style-model"), ("fish", "style-model"), ("tcsh", "evaluate")):
        assert word in command("--completion", shell).stdout


def test_a_command_that_is_nearly_right_is_suggested(folder, capsys):
    refused(
        capsys,
        folder,
        "evaluat",
        "pairs.csv",
        words=["there is no command evaluat (did you mean evaluate?)"],
    )


def test_the_version_needs_no_library():
    code = (
        "import sys; from tsteval.cli import main\ntry: main(['--version'])\nexcept SystemExit: pass\n"
        "assert not {'pandas', 'torch', 'matplotlib', 'pyarrow'} & set(sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode
        == 0
    )


def test_no_file_of_the_folder_stands_in_for_a_library(folder):
    for name in ("rapidfuzz", "regex", "tqdm", "pyarrow", "statistics", "calendar"):
        Path(f"{name}.py").write_text("raise SystemExit('what lay in the folder was run')")
    Path("bin").mkdir()
    Path("bin/tsteval").write_text(
        "import sys\nfrom tsteval.cli import main\nsys.exit(main())\n"
    )  # as pip writes it
    done = subprocess.run(
        [sys.executable, "bin/tsteval", "evaluate", write("pairs.csv"), "--metrics", "bleu,rouge"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "was run" not in done.stderr, done.stderr


def test_the_path_of_a_program_that_calls_the_command_stays(folder, capsys):
    before = list(sys.path)
    assert run(capsys, "metrics")[0] == 0 and sys.path == before


@dataclass(frozen=True)
class Group:
    file: str | None = option("a file", metavar="FILE", flags=())
    count: int = option("how many", 3, "N", lowest=1)
    share: float = option("how much", 0.5, "X", lowest=0)
    names: tuple[str, ...] = option("which", ())
    loud: bool = option("say it loudly", False)


def parsed(*words, group=Group):
    parser = argparse.ArgumentParser()
    add_options(parser, options_of(group))
    return parser.parse_args(words)


def test_what_is_chosen_has_its_type_and_the_rest_its_default():
    assert chosen(Group, parsed()) == Group()
    found = chosen(
        Group,
        parsed("x.csv", "--count", "7", "--share", ".25", "--names", "a", "--names", "b", "--loud"),
    )
    assert found == Group("x.csv", 7, 0.25, ("a", "b"), True)


@pytest.mark.parametrize(
    "words, told",
    [
        (["--count", "0"], "--count must be a whole number of at least 1, got 0"),
        (["--share", "-1"], "--share must be a number of at least 0, got -1.0"),
    ],
)
def test_what_is_out_of_range_is_named_as_it_was_written(words, told):
    with pytest.raises(InputError) as caught:
        chosen(Group, parsed(*words))
    assert str(caught.value) == told


def test_every_setting_is_an_option_with_its_flag():
    assert {known.name: known.flags for known in options_of(Settings)} == {
        setting.name: (setting.flag,) for setting in list_settings()
    }
    assert "seed" not in {known.name for known in options_of(Settings, without=("seed",))}


def test_an_option_that_may_be_given_once_says_so(capsys):
    with pytest.raises(SystemExit):
        parsed("--format", "csv", "--format", "html", group=Printing)
    with pytest.raises(SystemExit):
        parsed("--format", "csv", "--format", "json", group=Printing)
    assert "is given twice; formats of the report are named by --report" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text, value",
    [
        ("3", 3),
        ("none", "none"),
        ("None", None),
        ("[1, 2]", [1, 2]),
        ("a b", "a b"),
        ("True", True),
        ("__import__('os')", "__import__('os')"),
        ("(" * 9_000,) * 2,
    ],
)
def test_a_value_is_a_literal_or_a_text(text, value):
    assert literal(text) == value


def test_near_misses():
    assert (
        meant("blue", ["bleu", "rouge"]) == " (did you mean bleu?)" and meant("xyz", ["bleu"]) == ""
    )
