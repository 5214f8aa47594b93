"""`tsteval metrics`, `doctor` and `fetch`."""
from tests.cli.conftest import refused, run


def test_fetch_of_something_unknown(folder, capsys):
    refused(capsys, folder, "fetch", "moon", words=["'moon'", "all-MiniLM-L6-v2", "wnc_sample"])
    refused(capsys, folder, "fetch", "msr_compression", words=["cannot be fetched automatically"])


def test_fetch_of_an_asset(folder, capsys):
    status, out, _err = run(capsys, "fetch", "web-ngrams")
    assert status == 0 and out.startswith("web-ngrams: ")


def test_metrics_are_listed_with_what_they_need(capsys):
    from tsteval.core.metric import METRICS
    status, out, _err = run(capsys, "metrics")
    assert status == 0 and all(f"{name}: {METRICS[name].description}" in out for name in METRICS)
    assert "needs output, references" in out and "strategy=None" in out
