"""Kernels forked from one process that has imported what most notebooks import.

A kernel that loads PyTorch, transformers, pandas and matplotlib anew does nothing else for five to ten seconds. Here
one process (`python tests/kernels.py serve ...`) imports them once, imports nothing of tsteval, starts no thread and
runs nothing else; for each kernel it makes a copy of itself, and IPython's kernel runs in the copy as it would in a new
process. A kernel specification names `python tests/kernels.py kernel SOCKET ...` as the kernel's program:
it hands its environment, folder and output over, waits for the copy, and passes signals on, so that whoever starts
kernels needs to know nothing of this. Where processes cannot be forked (Windows) a notebook has the usual kernel.
"""

import builtins
import contextlib
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

CAN_FORK = hasattr(os, "fork")
# Imported and nothing more. The kernel comes first; pyplot is left to the copies, since its figures are shown only
# where it is imported after the kernel has begun.
PRELOADED = """
ipykernel.ipkernel ipykernel.kernelapp IPython.display IPython.core.interactiveshell IPython.core.completer jedi
ipywidgets numpy scipy.stats scipy.optimize scipy.sparse scipy.special pandas pyarrow pyarrow.parquet regex
nltk.tokenize nltk.translate.bleu_score nltk.stem.porter nltk.lm ot rapidfuzz torch torch.nn.functional transformers
transformers.modeling_utils transformers.models.auto.modeling_auto transformers.models.auto.tokenization_auto
transformers.models.bert.modeling_bert transformers.models.llama.modeling_llama transformers.models.gpt2.modeling_gpt2
transformers.integrations.ggml transformers.modeling_gguf_pytorch_utils transformers.pipelines peft gguf
safetensors.torch matplotlib.figure matplotlib.axes matplotlib.patches matplotlib.backends.backend_agg
matplotlib.backends.backend_svg sklearn.linear_model sklearn.metrics sacrebleu rouge_score.rouge_scorer spacy
spacy.lang.en jinja2 httpx2 tqdm.auto
"""


# ---- the process that is copied


class InKernel:
    """Stands for the kernel that a copy will be: pandas and tqdm look for one when they are imported."""

    kernel = True
    config = {"IPKernelApp": {}}


def preload():
    """Import what is named above, as a kernel would."""
    import IPython

    os.environ["JPY_PARENT_PID"] = str(
        os.getpid()
    )  # a kernel reads it when it is imported, and ends with that process
    asked = IPython.get_ipython
    IPython.get_ipython = builtins.get_ipython = InKernel
    for name in PRELOADED.split():
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    IPython.get_ipython = asked
    del builtins.get_ipython
    assert not {"tsteval", "matplotlib.pyplot"} & set(sys.modules), "imported too early"
    assert threading.active_count() == 1, "a process with threads cannot be copied"


def serve(listener, parent):
    """Answer each connection with a copy of this process that is a kernel; end when the parent has gone."""
    preload()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # copies that have ended are cleared away
    listener.settimeout(1)
    while os.getppid() == parent:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        with connection:
            if os.fork() == 0:
                listener.close()
                become_kernel(connection)


def become_kernel(connection):
    """Take over environment, folder and output of the one who asks, and be its kernel until it ends."""
    try:
        connection.settimeout(60)
        told, outputs, *_ = socket.recv_fds(connection, 4, 3)
        size = int.from_bytes(told, "big")
        wanted = json.loads(connection.recv(size, socket.MSG_WAITALL))
        connection.settimeout(None)
        for number, output in enumerate(outputs):
            os.dup2(output, number)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        os.environ.clear()
        os.environ.update(wanted["environment"], JPY_PARENT_PID=str(os.getppid()))
        os.chdir(wanted["folder"])
        sys.argv = ["ipykernel_launcher", *wanted["arguments"]]
        follow_the_path(wanted["environment"])
        import numpy as np

        np.random.seed()  # Python's own generator does so when a process forks
        connection.send(os.getpid().to_bytes(4, "big"))
        from ipykernel.kernelapp import launch_new_instance

        launch_new_instance()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def follow_the_path(environment):
    """Modules are found as a new process with this environment would find them."""
    ours = os.path.dirname(os.path.abspath(__file__))
    wanted = [
        os.path.abspath(part)
        for part in environment.get("PYTHONPATH", "").split(os.pathsep)
        if part
    ]
    sys.path[:] = [*wanted, *(part for part in sys.path if part not in ("", ours, *wanted))]


# ---- the program that a kernel specification names


def kernel(address, *arguments):
    """Ask for a kernel and be it, as far as whoever started this process can tell."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(address)
        wanted = json.dumps(
            {"environment": dict(os.environ), "folder": os.getcwd(), "arguments": arguments}
        ).encode()
        socket.send_fds(asking, [len(wanted).to_bytes(4, "big")], [0, 1, 2])
        asking.sendall(wanted)
        child = int.from_bytes(asking.recv(4, socket.MSG_WAITALL), "big")
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, _: os.kill(child, number))
        with contextlib.suppress(ConnectionError):
            while asking.recv(1):
                pass  # the copy holds the other end until it ends


# ---- for the tests


@contextlib.contextmanager
def forked_kernels():
    """A folder for `JUPYTER_PATH` in which "python3" is a kernel that is forked; None where nothing can be forked."""
    if not CAN_FORK:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="tsteval-kernels-") as folder:
        address = f"{folder}/socket"
        specification = Path(folder, "kernels", "python3", "kernel.json")
        specification.parent.mkdir(parents=True)
        specification.write_text(
            json.dumps(
                {
                    "argv": [
                        sys.executable,
                        "-S",
                        __file__,
                        "kernel",
                        address,
                        "-f",
                        "{connection_file}",
                    ],
                    "display_name": "Python 3 (forked)",
                    "language": "python",
                    "interrupt_mode": "message",
                }
            )
        )
        environment = os.environ | {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(address)
            listener.listen(16)  # who asks before all is imported waits
            server = subprocess.Popen(
                [sys.executable, __file__, "serve", str(listener.fileno()), str(os.getpid())],
                env=environment,
                stdin=subprocess.DEVNULL,
                pass_fds=[listener.fileno()],
            )
        try:
            yield folder
        finally:
            server.terminate()
            server.wait(30)


def main(what, where, *more):
    if what == "serve":
        serve(socket.socket(fileno=int(where)), int(more[0]))
    else:
        kernel(where, *more)


if __name__ == "__main__":
    main(*sys.argv[1:])
