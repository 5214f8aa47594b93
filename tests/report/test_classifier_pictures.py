"""Pictures of a classifier hold its numbers, with labelled axes."""
import matplotlib
import numpy as np
import pandas as pd

from tsteval.report.classifier_pictures import plot_accuracy_by_length, plot_confusion, plot_reliability

matplotlib.use("Agg")


def axes_of(figure): return figure.axes[0]


def test_a_confusion_matrix_shows_counts_and_shares():
    from matplotlib.figure import Figure
    axes = Figure().subplots()
    plot_confusion(pd.DataFrame([[3, 1], [0, 0]], index=["a", "b"], columns=["predicted a", "predicted b"]), axes)
    assert [text.get_text() for text in axes.texts] == ["3\n75%", "1\n25%", "0\n0%", "0\n0%"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]


def test_lengths_are_named_by_their_ends():
    from matplotlib.figure import Figure
    axes = Figure().subplots()
    plot_accuracy_by_length(pd.DataFrame({"shortest": [1, 9], "longest": [8, 9], "accuracy": [0.5, 0.9],
                                          "low": [0.4, 0.8],
                                          "high": [0.6, 1.0]}), axes)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1-8", "9"] and axes.get_ylim() == (0, 1)


def test_each_classifier_has_a_panel():
    table = pd.DataFrame({"confidence": [0.6, 0.9], "accuracy": [0.5, 0.9], "sentences": [10, 30]})
    figure = plot_reliability({"one": table, "two": table})
    assert len(figure.axes) == 2 and np.isclose(float(axes_of(figure).get_title().split()[-1]), 0.025)
