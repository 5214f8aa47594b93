"""Controls above a picture: typing, waiting, errors, closing, a still picture where no kernel runs."""

import asyncio
import base64
import functools
import os
import sys
from collections.abc import Callable, Sequence

from markupsafe import Markup

from ..core.display import displayable
from ..report.markup import BLUE, INK, VERMILION, Picture, heading, svg, tag

MODEL_CHARACTERS = (
    400  # what an explorer hands to a neural model, so that a pasted book does not stop it
)


def first_part(
    text: str,
) -> str:  # at most MODEL_CHARACTERS characters that can be shown
    """As much of a text as is handed to a model."""
    return displayable(text)[:MODEL_CHARACTERS]


def cut_note(
    *texts: str,
) -> Markup:  # empty if nothing is left out
    """A line that says how much of the longest text was left out."""
    longest = max(map(len, texts))
    if longest <= MODEL_CHARACTERS:
        return Markup("")
    return tag(
        "p",
        tag("strong", f"Only the first {MODEL_CHARACTERS:,} of {longest:,} characters are used."),
    )


_WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
_TYPING_PAUSE = 0.4  # seconds without a keystroke after which a text counts as typed
SPINNER = tag(
    "span",
    svg(
        16,
        16,
        "working",
        tag(
            "path",
            tag(
                "animateTransform",
                attributeName="transform",
                type="rotate",
                from_="0 8 8",
                to="360 8 8",
                dur="1s",
                repeatCount="indefinite",
            ),
            d="M8 2a6 6 0 1 1-6 6",
            fill="none",
            stroke=BLUE,
            stroke_width=3,
        ),
    ),
    " Working…",
    role="status",
)


_KEPT = " Until then the picture below is the one before."


def error_box(
    error: Exception,
    more: str = "",  # what stands behind it
) -> Markup:
    """What went wrong, above the picture or where it would stand."""
    text = " ".join(str(error).split())[:600] or type(error).__name__
    style = f"color:#8a2c00;border-left:4px solid {VERMILION};padding-left:8px;line-height:1.4;max-width:900px"
    return tag(
        "div", f"✖ {text.rstrip('.')}.{more}" if more else f"✖ {text}", role="alert", style=style
    )


def running_loop():
    """The kernel's event loop; None in a plain program, where nobody types."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


# No control is wider than the page, and texts have all of a telephone's width; drawings, which fit that, are larger where
# there is room.
_SIZES = Markup("""<style>
.tsteval-explorer :is(select, textarea) {min-width:0}
@media (min-width:900px) {.tsteval-explorer .tsteval-picture svg {zoom:1.3}}
@media (max-width:500px) {
  .tsteval-explorer :is(.widget-textarea, .widget-select) {flex-direction:column; align-items:stretch; height:auto}
  .tsteval-explorer :is(.widget-textarea, .widget-select) > label {width:auto !important; text-align:left}
}
</style>""")


class _ExplorerParts:
    """Labelled controls above a picture, which is drawn again when the value of a control changes."""

    def __init__(self, title: str, rows: list[dict], draw: Callable, slow: tuple = ()):
        import ipywidgets

        self.title = title
        self.draw = draw
        self.timer = None
        self.drawing = False
        self.controls = {name: control for row in rows for name, control in row.items()}
        self.message = ipywidgets.HTML(layout={"min_height": "20px", "margin": "0"})
        wrap = {"flex_flow": "row wrap", "width": "100%", "grid_gap": "2px 16px"}
        # beside the picture where there is room
        charts = [control for control in self.controls.values() if isinstance(control, _ChartParts)]
        boxes = [[control for control in row.values() if control not in charts] for row in rows]
        self.heading = ipywidgets.HTML(_SIZES + tag("strong", title))
        self.picture = ipywidgets.HTML(
            layout={"flex": "1 1 320px", "min_width": "0"} if charts else {"width": "100%"}
        )
        super().__init__(
            [
                self.heading,
                *(ipywidgets.Box(box, layout=wrap) for box in boxes if box),
                self.message,
                ipywidgets.Box([*charts, self.picture], layout=wrap) if charts else self.picture,
            ]
        )  # type: ignore[call-arg]  # a box, once `Explorer` is made
        self.add_class("tsteval-explorer")  # type: ignore[attr-defined]
        for name, control in self.controls.items():
            self._observe(control, slow=name in slow)
        self.redraw(slow=bool(slow))

    def _observe(self, control, slow: bool) -> None:
        def changed(change):
            self._cancel()
            if isinstance(control, widget_classes()["TextField"]) and (loop := running_loop()):
                self.timer = loop.call_later(_TYPING_PAUSE, self.redraw, slow)
            else:
                self.redraw(slow)

        if control.has_trait("value"):
            control.observe(changed, "value")

    def _cancel(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def redraw(self, slow: bool = False) -> None:
        """Draw the picture for the present values, or say why that cannot be done; `slow` shows a spinner meanwhile."""
        if self.drawing:  # the drawing itself moved a control
            return
        self.drawing, self.message.value = True, str(SPINNER) if slow else self.message.value
        values = {
            name: control.value
            for name, control in self.controls.items()
            if control.has_trait("value")
        }
        try:
            self.picture.value = str(self.draw(**values))
            self.message.value = ""
        # whatever went wrong, the person at the slider has to learn of it, and keeps the picture before it
        except Exception as error:
            self.message.value = str(error_box(error, _KEPT * bool(self.picture.value)))
        finally:
            self.drawing = False

    def close(self) -> None:
        """Take the explorer off the page and everything that belongs to it out of memory."""
        self._cancel()
        super().close()  # type: ignore[misc]

    def static_picture(self) -> Markup:
        """What stands in a rendered notebook in place of the explorer: the picture, and how to move its controls."""
        where = "This picture stands still. Run its cell in Jupyter, or tsteval explore, to move the controls."
        charts = [
            control.drawing.value
            for control in self.controls.values()
            if isinstance(control, _ChartParts)
        ]
        picture = Picture("".join([*charts, self.picture.value or self.message.value])).still
        return tag("div", heading(self.title), picture, tag("em", where))

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        bundle |= {"text/plain": self.title, "text/html": str(self.static_picture())}
        if os.environ.get("TSTEVAL_STATIC"):
            del bundle[_WIDGET_VIEW]
        return bundle


_POINT = 24  # pixels: how wide the place is that can be pressed
_POINTS = """.{0} {{position:relative; overflow:hidden; max-width:100%}}
.{0} svg {{display:block; max-width:100%; height:auto}}
.{0} .widget-html, .{0} .widget-html-content {{margin:0; padding:0; line-height:0}}
.{0} .widget-toggle-buttons {{position:absolute; inset:0; margin:0; padding:0; width:auto; height:auto;
  overflow:visible; pointer-events:none}}
.{0} button {{position:absolute; width:{1}px; min-width:0; height:{1}px; margin:-{2}px 0 0 -{2}px !important;
  padding:0; border:0; border-radius:50%; background:transparent !important; box-shadow:none !important;
  color:transparent !important; font-size:1px; line-height:1; overflow:hidden; cursor:pointer;
  pointer-events:auto}}
.{0} button:hover {{outline:2px solid {3}}}
.{0} button:focus, .{0} button:focus-visible {{outline:3px solid {3} !important; outline-offset:1px; z-index:2}}
"""


class _ChartParts:
    """A drawing with a button on each of its points; its value is that of the button that was pressed last."""

    def __init__(self, label: str):
        import ipywidgets

        self.description = label
        self.places = ipywidgets.HTML(layout={"display": "none"})
        self.shown_points = None
        self.drawing = ipywidgets.HTML()
        self.buttons = ipywidgets.ToggleButtons(options=[])
        inner = ipywidgets.VBox([self.places, self.drawing, self.buttons])
        self.name = f"tsteval-points-{inner.model_id}"
        inner.add_class(self.name)
        super().__init__([inner])  # type: ignore[call-arg]  # a box, once `Chart` is made
        self.layout.overflow = "auto"
        self.layout.max_width = "100%"  # type: ignore[attr-defined]
        self.buttons.observe(self._pressed, "value")

    @property
    def options(self) -> tuple:
        """The points as (name, value)."""
        return self.buttons.options

    def _pressed(self, change) -> None:
        if change["new"] is not None:
            self.value = change["new"]

    def show(
        self,
        drawing,  # a `Chart`
        points: Sequence[tuple[int, float, float, str]],
        selected: int | None = None,
    ) -> None:
        """Draw, and put a button (its value, pixels from the left, from the top, name) on each point."""
        self.drawing.value = str(
            tag("div", drawing, class_="tsteval-picture", style="background:#fff;color:#111")
        )
        if points != self.shown_points:
            self.shown_points = list(points)
            wide, tall = drawing.get_size_inches() * 72
            rules = [
                f".{self.name} button:nth-child({n}) {{left:{100 * x / wide:.2f}%; top:{100 * y / tall:.2f}%}}"
                for n, (_, x, y, _) in enumerate(points, 1)
            ]
            style = _POINTS.format(self.name, _POINT, _POINT // 2, INK) + "\n".join(rules)
            self.places.value = f"<style>{style}</style>"
            names = [displayable(f"{n}. {name}") for n, (*_, name) in enumerate(points, 1)]
            self.buttons.options = [(name, value) for name, (value, *_) in zip(names, points)]
            self.buttons.tooltips = names
        self.value = self.buttons.value = (
            selected if selected in {value for value, *_ in points} else None
        )


def chart(
    label: str,  # what a press on a point chooses
):
    """A drawing whose points can be pressed: `show(drawing, points, selected)` fills it, `value` is the chosen one.
    Returns a widget."""
    return widget_classes()["Chart"](label)


@functools.cache
def widget_classes() -> dict[str, type]:
    """The kinds of widget that are added here: Chart, Explorer, Panel, TextField."""
    import ipywidgets
    import traitlets

    class Panel(ipywidgets.VBox):
        """A box that, unlike others, takes all it holds out of memory when it closes."""

        def close(self):
            if sys.is_finalizing():
                return  # a widget closes itself when Python ends, where nothing can be imported
            if self.comm is not None:  # open
                for part in _parts(self)[:0:-1]:
                    part.unobserve_all()
                    part.close()
                self.unobserve_all()
            super().close()

    class Explorer(_ExplorerParts, Panel):
        pass

    class Chart(_ChartParts, Panel):
        value = traitlets.Any(None, allow_none=True)

    class TextField(ipywidgets.Textarea):
        # what a browser sends may hold half a character, which no message back could carry
        value = traitlets.Unicode("").tag(
            sync=True, echo_update=False, from_json=lambda text, _: displayable(text)
        )

    return {"Chart": Chart, "Explorer": Explorer, "Panel": Panel, "TextField": TextField}


def _parts(widget) -> list:
    """A widget and all that hangs on it: children, layouts, styles."""
    import ipywidgets

    parts = {}
    waiting = [widget]
    while waiting:
        part = waiting.pop()
        parts[part.model_id] = part
        values = [*getattr(part, "children", ()), *part.trait_values().values()]
        opened = [
            value
            for value in values
            if isinstance(value, ipywidgets.Widget) and value.comm is not None
        ]
        waiting += [value for value in opened if value.model_id not in parts]
    return list(parts.values())


def explorer(
    title: str,
    rows: list[dict],  # rows of controls, each control under the name of an argument of `draw`
    draw: Callable,  # takes the values of all controls that have one, returns a picture
    slow: tuple[str, ...] = (),  # controls after whose move a spinner shows
):
    """Controls with their picture. Returns a widget."""
    return widget_classes()["Explorer"](title, rows, draw, slow)


def panel(
    *children,  # widgets
):
    """A box that takes all it holds out of memory when it closes. Returns a widget."""
    return widget_classes()["Panel"](list(children))


_LABEL_WIDTH = {"description_width": "110px"}
# a field has 2 pixels of air at each side
_WIDE = {"width": "calc(100% - 4px)", "max_width": "900px"}
_NARROW = {"width": "340px", "max_width": "100%"}


def text_field(label: str, value: str, lines: int = 2):
    """A labelled field to type in."""
    return widget_classes()["TextField"](
        value=displayable(value), description=label, rows=lines, style=_LABEL_WIDTH, layout=_WIDE
    )


def slider(label: str, value: float, low: float, high: float, step: float):
    """A labelled slider, of whole numbers where the step is one."""
    import ipywidgets

    kind = ipywidgets.IntSlider if isinstance(step, int) else ipywidgets.FloatSlider
    return kind(
        value=value,
        min=low,
        max=high,
        step=step,
        description=label,
        style=_LABEL_WIDTH,
        layout=_NARROW,
    )


def choice(label: str, options, value):
    """A labelled list of options, one of which is chosen."""
    import ipywidgets

    return ipywidgets.Dropdown(
        options=options, value=value, description=label, style=_LABEL_WIDTH, layout=_NARROW
    )


def listing(label: str):
    """A labelled list of several lines, one of which is chosen; it can be worked with the keyboard."""
    import ipywidgets

    return ipywidgets.Select(
        options=[], description=label, rows=7, style=_LABEL_WIDTH, layout=_WIDE
    )


def button_and_link(label: str):
    """A button, a place beside it for a link, and the box that holds both."""
    import ipywidgets

    button = ipywidgets.Button(description=label, layout={"width": "auto"})
    link = ipywidgets.HTML()
    return button, link, ipywidgets.HBox([button, link])


def checkbox(label: str, value: bool = False):
    """A labelled box to tick."""
    import ipywidgets

    return ipywidgets.Checkbox(
        value=value, indent=False, description=label, layout={"width": "auto"}
    )


def show(control, visible: bool) -> None:
    """Show a control or hide it."""
    control.layout.display = None if visible else "none"


def download_link(
    name: str,  # of the file
    content: str,
    label: str,  # of the link
) -> Markup:
    """A link that gives its reader a file; the file is inside the link."""
    data = base64.b64encode(
        content.encode("utf-8", "replace")
    ).decode()  # half a surrogate pair becomes "?"
    return tag(
        "a",
        label,
        download=name,
        href=f"data:text/csv;charset=utf-8;base64,{data}",
        style="color:#0b5cad;text-decoration:underline",
    )
