"""How far long work is, in plain lines where nobody looks at a bar."""

from tsteval.core import progress


def test_lines_come_now_and_then_and_name_what_is_left(monkeypatch):
    clock = iter([0.0, 20.0, 25.0, 60.0, 90.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    lines = []
    with progress.counted(1200, "rows", lines.append, done=200) as count:
        for more in (100, 100, 300, 500):
            count(more)
    assert lines == [
        "300 of 1,200 rows, about 3.0 minutes left",
        "700 of 1,200 rows, about 1.0 minutes left",
    ]


def test_nothing_is_shown_to_who_does_not_ask(capsys):
    with progress.counted(2, "rows", False) as count:
        count(2)
    progress.tell(False, "line")
    assert capsys.readouterr() == ("", "")
