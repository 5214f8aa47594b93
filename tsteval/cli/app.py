"""The command `tsteval`: which commands there are, and what is said of a mistake"""

import argparse
import ast
import contextlib
import importlib
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import tsteval

from ..core.assets import AssetError
from ..core.checks import InputError, check_number, meant
from ..core.display import displayable
from ..core.progress import Progress
from ..core.version import __version__


@dataclass(frozen=True)
class Option:
    """What the parser needs to know of one option."""

    name: str  # of the field
    kind: type  # bool | int | float | str
    default: Any
    words: str  # for the help
    metavar: str = ""
    flags: tuple[str, ...] = ()  # as it is written; none for what is given without a name
    choices: tuple[str, ...] = ()
    many: bool = False  # whether it may be repeated
    check: Callable[[Any, str], None] | None = (
        None  # raises an InputError, given the value and the option's name
    )
    required: bool = False
    once: str = ""  # what is said if it is given twice; empty: that it is


def option(
    words: str,  # for the help; the default is added to it
    default: Any = None,
    metavar: str = "NAME",  # what stands for a value
    *,
    flags: tuple[str, ...] | None = None,  # None: by the field's name
    choices: Iterable[str] = (),  # the values that are allowed; none: any
    lowest: float
    | None = None,  # the smallest number that is allowed, where the option is a number
    required: bool = False,
    once: str = "",  # see `Option`
) -> Any:  # a field of a dataclass
    """Declare an option as a field of a frozen dataclass."""

    def check(value: Any, name: str) -> None:
        if lowest is not None:
            check_number(value, name, lowest, whole=isinstance(value, int))

    metadata = {
        "words": words,
        "metavar": metavar,
        "flags": flags,
        "choices": tuple(choices),
        "check": check,
        "required": required,
        "once": once,
    }
    return field(default=default, metadata=metadata)


def _kind(annotation: Any) -> type:
    return next(
        (kind for kind in (bool, int, float) if kind in (get_args(annotation) or (annotation,))),
        str,
    )


def _flags(name: str, metadata: Mapping[str, Any]) -> tuple[str, ...]:
    if (flags := metadata.get("flags")) is not None:
        return flags
    return (metadata.get("flag") or f"--{name.replace('_', '-')}",)


def options_of(
    group: type,  # a dataclass whose fields were declared by `option`, or `Settings`
    without: Iterable[str] = (),  # names of fields to leave out
) -> tuple[Option, ...]:
    """The options that a dataclass declares, in order."""
    left_out = set(without)
    options = []
    for entry in fields(group):
        metadata = entry.metadata
        many = get_origin(entry.type) is tuple
        if entry.name in left_out:
            continue
        options.append(
            Option(
                entry.name,
                _kind(entry.type),
                entry.default,
                metadata["words"],
                metadata["metavar"],
                _flags(entry.name, metadata),
                tuple(metadata["choices"]),
                many,
                metadata["check"],
                metadata.get("required", False),
                metadata.get("once", ""),
            )
        )
    return tuple(options)


@dataclass(frozen=True)
class Command:
    """One command of `tsteval`."""

    run: Callable[[argparse.Namespace], int]  # what it does with what was parsed; its exit status
    options: tuple[Option, ...] = ()
    description: str = ""
    passes_on: bool = False  # whether words that it does not know go to what it starts


class _Once(argparse.Action):
    """An option that may be given once; a second time would go unnoticed."""

    def __init__(self, *arguments, message: str, **keywords):
        super().__init__(*arguments, **keywords)
        self.message = message

    def __call__(self, parser, namespace, values, option_string=None):
        if getattr(namespace, self.dest, None) is not None:
            parser.error(f"{option_string} {self.message}")
        setattr(namespace, self.dest, values)


def _help(option: Option) -> str:
    words = option.words.replace("%", "%%")
    shown = option.default if isinstance(option.default, (str, int, float)) else ""
    # None and the like are told by the words
    return (
        words
        if shown == "" or option.kind is bool or "default" in words
        else f"{words} (default: {shown})"
    )


def add_options(
    parser: argparse.ArgumentParser,
    options: Iterable[Option],
) -> None:
    """Teach a parser these options; what is not given becomes None."""
    for option in options:
        keywords: dict[str, Any] = {"help": _help(option), "default": None}
        if option.kind is bool:
            keywords |= {"action": "store_const", "const": True}
        else:
            keywords |= {
                "metavar": None if option.choices else option.metavar,
                "choices": option.choices or None,
                "type": option.kind,
            }
        if option.many and option.flags:
            keywords |= {"action": "append"}
        elif not option.many and option.flags and option.kind is not bool:
            keywords |= {"action": _Once, "message": option.once or "is given twice; give it once"}
        if option.flags:
            parser.add_argument(
                *option.flags, dest=option.name, required=option.required, **keywords
            )
        else:
            parser.add_argument(
                option.name,
                nargs=("+" if option.required else "*")
                if option.many
                else None
                if option.required
                else "?",
                **keywords,
            )


_Group = TypeVar("_Group")


def chosen(
    group: type[_Group],  # a dataclass whose fields are options
    arguments: argparse.Namespace,
) -> _Group:
    """What was chosen of a group of options. Raises: InputError that names the option whose value is out of range."""
    values = {}
    for option in options_of(group):
        value = getattr(arguments, option.name, None)
        if value in (None, []):
            continue
        if option.check:
            option.check(value, option.flags[-1] if option.flags else option.name)
        values[option.name] = tuple(value) if option.many else value
    return group(**values)


def literal(
    text: str,
) -> Any:  # a number, list, truth value ..., or the text itself
    """What a text of the command line stands for."""
    try:
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return text


def _say_progress(line: str) -> None:
    from tsteval.report.terminal import say

    say(f"tsteval: {displayable(line)}", file=sys.stderr)
    sys.stderr.flush()


@dataclass(frozen=True)
class Printing:
    """What is printed and written."""

    format: str = option(
        "of what is printed",
        "text",
        choices=("text", "markdown", "latex", "json", "csv"),
        once="says how the table is printed and is given twice; formats of the report are named by "
        "--report",
    )
    percent: bool = option("print BLEU, ROUGE, chrF, METEOR and STI in hundredths", False)
    all_scores: bool = option(
        "print every score, not only the one that stands for each metric", False
    )
    report: tuple[str, ...] = option(
        "format of the report; may be repeated (default: html)",
        ("html",),
        choices=("html", "markdown", "latex", "json"),
    )
    csv_safe: bool = option(
        "put an apostrophe before texts that a spreadsheet takes for formulas", False
    )
    quiet: bool = option("say nothing of how far a run is", False)

    @property
    def progress(self) -> Progress:
        """How far a run is: a bar in a terminal; now and then a line where nobody looks at one."""
        return not self.quiet and (sys.stderr.isatty() or _say_progress)


def _told_commands() -> dict[str, tuple[str, str]]:
    """Command -> its module and a line for the help: what the modules' first lines say of `tsteval NAME`."""
    commands = {}
    for path in sorted((Path(tsteval.__file__).parent / "cli").glob("*.py")):
        with open(path, encoding="utf-8") as lines:
            first = lines.readline().strip().strip('"')
        descriptions = re.findall(r"`tsteval (\w+)`:? (.+?)(?=, `tsteval |$)", first)
        commands |= {name: (path.stem, words) for name, words in descriptions}
    return commands


_COMMANDS = _told_commands()


def _command(name: str) -> Command:
    return getattr(importlib.import_module(f"tsteval.cli.{_COMMANDS[name][0]}"), f"{name}_command")


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        _tell(f"{message}; see {self.prog} --help")
        self.exit(2)

    def flags(self) -> dict[str, str]:
        """How each option is written."""
        return {
            action.dest: action.option_strings[-1]
            for action in self._actions
            if action.option_strings
        }


class _Answer(argparse.Action):
    """An option that prints an answer and ends the command."""

    def __call__(self, parser, namespace, values, option_string=None):
        from tsteval.report.terminal import citation, completion_script, say

        say(
            completion_script(_parser(_COMMANDS), str(values))
            if self.dest == "completion"
            else citation(str(values))
        )
        parser.exit()


def _parser(names) -> _Parser:
    """A parser that knows the options of these commands, and the names of all."""
    parser = _Parser(
        prog="tsteval", description="Is this generated text any good, and how do you know?"
    )
    parser.add_argument("--version", action="version", version=f"tsteval {__version__}")
    parser.add_argument(
        "--citation",
        action=_Answer,
        nargs="?",
        const="text",
        choices=("text", "bibtex"),
        help="say how to cite this package",
    )
    parser.add_argument(
        "--completion",
        action=_Answer,
        choices=("bash", "zsh", "fish", "tcsh"),
        help="print a script that completes this command in a shell",
    )
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=_Parser
    )
    for name, (_, words) in _COMMANDS.items():
        command = _command(name) if name in names else Command(lambda arguments: 0)
        one = commands.add_parser(name, help=words, description=command.description)
        add_options(one, command.options)
        one.set_defaults(chosen=command, parser=one)
    return parser


def _too_much(word: str, parser: _Parser) -> str:
    """Why a word that no option takes is refused."""
    if word.partition("=")[0] == "--set":
        return "options of a metric stand behind its name: --metrics cps:strategy=none"
    if word.startswith("-"):
        return f"there is no option {word}{meant(word, parser.flags().values())}"
    from tsteval.core.metric import METRICS

    return f"{word} is too much" + (
        "; put a comma, and no blank, between the names of metrics"
        if word.strip(",") in METRICS
        else ""
    )


def _empty_argument(words: list[str]) -> str | None:
    """What is said of an argument without a letter."""
    for before, word in zip(["tsteval", *words], words):
        if not word:
            return f"the argument after {before} is empty"
        if word.startswith("--") and word.endswith("=") and word.count("=") == 1:
            return f"nothing stands after {word}"
    return None


def _parsed(words: list[str], arguments: argparse.Namespace) -> None:
    """Fill the arguments; ends the command where they are wrong."""
    name = next((word for word in words if not word.startswith("-")), None)
    parser = _parser({name} & set(_COMMANDS))
    if name and name == words[0] and name not in _COMMANDS:
        parser.error(f"there is no command {displayable(name)}{meant(name, _COMMANDS)}")
    _, arguments.extra = parser.parse_known_args(words, arguments)
    if arguments.chosen.passes_on:
        return
    if arguments.extra:
        arguments.parser.error(_too_much(arguments.extra[0], arguments.parser))
    if empty := _empty_argument(words):
        arguments.parser.error(empty)


_SPREADSHEETS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")


def _tell(message: object) -> None:
    from tsteval.report.terminal import one_line, say

    say(f"tsteval: error: {one_line(message)}", file=sys.stderr)


def _message(error: Exception, arguments: argparse.Namespace) -> str:
    """What is said of an error."""
    if not isinstance(error, InputError):
        return str(error)
    flags = arguments.parser.flags()
    if error.argument in flags:
        error = error.at(argument=flags[error.argument])
    if error.row is None:
        return str(error)
    line = (
        f"; line {error.row + 2} of a spreadsheet"
        if str(error.file).endswith(_SPREADSHEETS)
        else ""
    )
    return f"{error} (rows are counted from 0, without the header{line})"


def _say_note(message, category, filename, lineno, file=None, line=None) -> None:
    """A warning of Python as a line for a person."""
    from tsteval.report.terminal import one_line, say

    say(f"tsteval: note: {one_line(message)}", file=sys.stderr)


def main(
    argv: list[str] | None = None,  # arguments after the command's name; None: those of the process
    # exit status: 0 done, 1 a check failed, 2 wrong input or a missing model, 130 interrupted, 141 nobody reads
) -> int:
    """The `tsteval` command."""
    arguments = argparse.Namespace(written=None)
    path = list(sys.path)
    try:
        try:
            _parsed(sys.argv[1:] if argv is None else argv, arguments)
            # one's own metric lies beside one's file; last, so that no file there stands in for a library
            sys.path.append(os.getcwd())
            with warnings.catch_warnings():
                warnings.showwarning = _say_note
                return arguments.chosen.run(arguments)
        finally:
            sys.path[:] = path
            sys.stdout.flush()
    except BrokenPipeError:
        with contextlib.suppress(
            OSError, ValueError
        ):  # what is left in the buffer would fail once more at the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        sys.stderr.write(
            f"tsteval: stopped; the results are in {arguments.written}\n"
            if arguments.written
            else "tsteval: stopped; no result was written\n"
        )
        return 130
    except (
        AssetError,
        InputError,
        OSError,
    ) as error:  # anything else is a mistake in this package, not in the input
        _tell(_message(error, arguments))
        return 2
