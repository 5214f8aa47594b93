"""What `tsteval explore` starts: Voila with one notebook, and the stored chapters at addresses of their own."""

import json
import re
import sys
import tempfile
import threading
import webbrowser
from datetime import datetime, timedelta, timezone
from html import escape
from pathlib import Path

CHAPTER = r"((?:[a-z]+/)?[0-9A-Za-z_]+)\.ipynb"  # of an address below /chapter/
_NOTE = (
    "<p><em>This chapter as it is stored. Formulas stand in LaTeX; run <code>tsteval course</code> to see them "
    "set and to run the cells.</em></p>"
)


def chapter_page(
    path: Path | str,  # a notebook
) -> str:  # HTML that needs no other file
    """A stored notebook as a page, without its hidden cells."""
    import nbformat
    from nbconvert import HTMLExporter

    notebook = nbformat.read(path, as_version=4)
    notebook.cells = [
        cell for cell in notebook.cells if not re.match(r"#\|\s*(hide|default_exp)\b", cell.source)
    ]
    page, _ = HTMLExporter(
        mathjax_url="",
        require_js_url="",
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        embed_images=False,
    ).from_notebook_node(notebook)
    page = re.sub(r'<script[^>]*\bsrc="[^"]*"[^>]*>\s*</script>', "", page)  # nothing is fetched
    page = page.replace(
        "<head>", '<head><meta name="viewport" content="width=device-width, initial-scale=1">', 1
    )
    title = re.search(r"^# (.+)$", notebook.cells[0].source, re.M) if notebook.cells else None
    if title:
        page = re.sub(
            r"<title>.*?</title>",
            lambda _: f"<title>{_escaped(title[1])}</title>",
            page,
            count=1,
            flags=re.S,
        )
    return re.sub(r"(<body[^>]*>)", lambda match: match[1] + _NOTE, page, count=1)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def stored_chapters() -> Path | None:  # a folder of notebooks; None if they were not installed
    """Where the chapters are as they were stored."""
    places = (
        Path(__file__).resolve().parents[2] / "nbs",
        Path(sys.prefix) / "share" / "tsteval" / "nbs",
    )
    return next((place for place in places if (place / "index.ipynb").is_file()), None)


def one_cell(
    code: str,
) -> str:  # JSON
    """A notebook with one cell."""
    cell = {
        "cell_type": "code",
        "id": "explorer",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": code,
    }
    kernel = {"kernelspec": {"display_name": "python3", "language": "python", "name": "python3"}}
    return json.dumps({"cells": [cell], "metadata": kernel, "nbformat": 4, "nbformat_minor": 5})


_NAMES = ("localhost", "127.0.0.1", "::1", "[::1]")  # of this machine, as a request may name it
_MOST_KERNELS = 6  # at a time; each takes about 230 MB
_IDLE = 300
_LOOK_EVERY = (
    30  # seconds: a kernel that nobody looks at ends after the first, looked for each second
)
_QUIET = timedelta(
    seconds=10
)  # a kernel without a page that has said nothing for so long makes room for another
_ELSEWHERE = re.compile(
    r"""<(link|script)\b[^>]*\b(?:href|src)=["'](?:https?:)?//[^>]*>(?:\s*</script>)?"""
)


def _guarded(handler: type) -> type:
    """The same handler of requests, which answers to the names of this machine alone."""
    from tornado.web import HTTPError

    class Guarded(handler):
        def prepare(self):
            if self.request.host_name.lower() not in _NAMES:
                raise HTTPError(403, reason="ask for localhost")
            return super().prepare()

    return Guarded


def _kernels() -> type:
    """A manager of kernels that starts no more than a few."""
    from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
    from tornado.web import HTTPError

    class FewKernels(AsyncMappingKernelManager):
        starting = 0

        async def _make_room(self):
            for kernel_id in list(self.list_kernel_ids()):
                kernel = self.get_kernel(kernel_id)
                silent = datetime.now(timezone.utc) - kernel.last_activity > _QUIET
                if (
                    silent
                    and kernel.execution_state == "idle"
                    and not self._kernel_connections.get(kernel_id)
                ):
                    await self.shutdown_kernel(kernel_id)

        async def start_kernel(self, **options):
            if len(self) + self.starting >= _MOST_KERNELS:
                await self._make_room()
            if len(self) + self.starting >= _MOST_KERNELS:
                raise HTTPError(
                    503,
                    f"{_MOST_KERNELS} pages are open, which is as many as there may be: close one, or "
                    f"come back in {_IDLE // 60 or 1} minutes",
                )
            self.starting += 1
            try:
                return await super().start_kernel(**options)
            finally:
                self.starting -= 1

    return FewKernels


def _pages(chapters: Path | None) -> tuple[type, type]:
    """The handlers of the page of explorers, and of a stored chapter."""
    from jupyter_server.base.handlers import JupyterHandler
    from tornado.web import HTTPError, authenticated
    from voila.tornado.handler import TornadoVoilaHandler

    class Page(TornadoVoilaHandler):
        def write(self, chunk):
            super().write(_ELSEWHERE.sub("", chunk) if isinstance(chunk, str) else chunk)

        def write_error(self, status_code, **details):
            if status_code != 503:
                return super().write_error(status_code, **details)
            message = escape(details["exc_info"][1].log_message)
            return self.finish(f"<!doctype html><title>tsteval</title><p>{message}</p>")

    class Chapter(JupyterHandler):
        @authenticated
        def get(self, name: str) -> None:
            path = (chapters or Path()) / f"{name}.ipynb"
            if chapters is None or not path.is_file():
                raise HTTPError(404)
            self.finish(chapter_page(path))

    return Page, Chapter


def _application(chapters: Path | None) -> type:
    """Voila with a token, with handlers that are guarded, and with few kernels."""
    from jupyter_core.paths import jupyter_config_path
    from jupyter_server.utils import url_path_join
    from traitlets import Bool, default
    from voila.app import Voila
    from voila.tornado.handler import TornadoVoilaHandler

    page, chapter = _pages(chapters)

    class Explore(Voila):
        auto_token = Bool(True).tag(config=True)

        @default("config_file_paths")
        def _config_file_paths_default(self):
            return jupyter_config_path()

        def init_settings(self):
            self.voila_configuration.multi_kernel_manager_class = _kernels()
            settings = super().init_settings()
            self.kernel_manager.cull_idle_timeout = _IDLE
            self.kernel_manager.cull_interval = _LOOK_EVERY
            return {**settings, "allow_remote_access": False, "local_hostnames": list(_NAMES)}

        def init_handlers(self):
            handlers = [
                (url_path_join(self.server_url, f"/chapter/{CHAPTER}"), chapter),
                *super().init_handlers(),
            ]
            return [
                (pattern, _guarded(page if handler is TornadoVoilaHandler else handler), *options)
                for pattern, handler, *options in handlers
            ]

        def launch_browser(self):
            address = f"{self.connection_url}?token={self.identity_provider.token}"
            start = Path(self.notebook_path).with_name(
                "start.html"
            )  # in a folder that is this person's alone
            start.write_text(
                f'<meta http-equiv="refresh" content="0; url={escape(address)}">', encoding="utf-8"
            )
            threading.Thread(target=webbrowser.open, args=(start.as_uri(),), daemon=True).start()

    return Explore


def serve(
    code: str,  # what the page shows: the value of its last line
    options: list[str],  # of Voila
    chapters: Path
    | None,  # where the chapters are; None: nowhere, so tabs name them and do not link
) -> None:
    """Serve a page, to whoever has the token that is printed, until the server is told to stop."""
    # in the kernel alone
    if chapters is not None:
        code = f'import os; os.environ["TSTEVAL_CHAPTERS"] = "chapter/{{}}.ipynb"\n{code}'
    with tempfile.TemporaryDirectory(prefix="tsteval-explore-") as folder:
        notebook = Path(folder) / "tsteval.ipynb"
        notebook.write_text(one_cell(code), encoding="utf-8")
        _application(chapters).launch_instance(
            [*options, str(notebook)]
        )  # returns when the server is told to stop
