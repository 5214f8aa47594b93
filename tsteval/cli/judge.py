"""`tsteval judge` starts a language model on this machine that can be asked as a judge"""

import importlib.util
import sys
import threading
from argparse import Namespace
from dataclasses import dataclass

from ..core.assets import ASSETS, AssetError
from ..core.checks import InputError, check_number
from ..core.fetch import asset_path
from ..models.roles import LARGER_LANGUAGE_MODEL
from ..report.terminal import say
from .app import Command, chosen, option, options_of

_MODELS = tuple(name for name, asset in ASSETS.items() if asset.gguf_file)


@dataclass(frozen=True)
class _Judge:
    what: str = option(
        "serve: start llama.cpp's server with the model, and print its address",
        flags=(),
        choices=("serve",),
        required=True,
    )
    model: str = option(
        "the language model, fetched if it is not there", LARGER_LANGUAGE_MODEL, choices=_MODELS
    )
    port: int | None = option("listen here (default: a port that is free)", metavar="N")
    threads: int | None = option(
        "processor cores to use (default: as llama.cpp chooses)", metavar="N", lowest=1
    )


def _start(options: _Judge):
    """A running server of llama.cpp; it ends when nobody holds it."""
    import xllamacpp

    [weights] = asset_path(options.model).glob("*.gguf")
    settings = xllamacpp.CommonParams()
    settings.model.path = str(weights)
    settings.model_alias = {options.model}
    settings.n_parallel, settings.n_ctx = 1, 8192
    settings.warmup, settings.verbosity = False, -1
    settings.port = options.port or 0
    if options.threads:
        settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = options.threads
    try:
        return xllamacpp.Server(settings)
    except RuntimeError as error:
        raise InputError(
            f"llama.cpp's server did not start. Is the port free, and is there memory for "
            f"{ASSETS[options.model].size / 1e9:.1f} GB of weights? It says: {' '.join(str(error).split())}",
            argument="--port" if options.port else None,
        ) from error


def _judge(arguments: Namespace) -> int:
    options = chosen(_Judge, arguments)
    if options.port is not None:
        check_number(options.port, "--port", 1, 65_535, whole=True)
    if importlib.util.find_spec("xllamacpp") is None:
        raise AssetError(
            "tsteval judge serve needs llama.cpp; install it with pip install 'tsteval[judge]'"
        )
    server = _start(options)
    address = f"{server.listening_address}/v1"
    say(
        f"{options.model} answers at {address} until you press Ctrl-C. In another terminal:\n"
        f"    tsteval evaluate FILE --metrics judge:criterion=content,address={address}"
    )
    sys.stdout.flush()
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        say("tsteval: the server ends", file=sys.stderr)
    return 0


judge_command = Command(
    _judge,
    options_of(_Judge),
    "Start a language model as a judge on this machine. It reads its weights as they were fetched, in four to six bits each, "
    "so that it takes a third of the memory that --metrics judge:model=... takes.",
)
