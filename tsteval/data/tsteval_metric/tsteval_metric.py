"""tsteval's metrics as a module of Hugging Face's library `evaluate`: `evaluate.load(this folder, "rouge")`."""
import datasets
import evaluate

import tsteval
import tsteval.evaluation as evaluation
import tsteval.core.metric as registry

# ours -> theirs
COLUMNS = {"output": "predictions", "source": "sources", "references": "references", "input": "inputs"}
DESCRIPTION = ("Metrics of tsteval. The configuration names the metric, such as bleu, sti or cps; options of the "
               "metric go to compute.")
# where a metric of the library has the same name and gives another number
OTHERS = {
    "bleu": " It is sacreBLEU's: the brevity penalty takes the reference of the closest length, and zero counts are "
            "smoothed. The library's own module bleu takes the shortest reference and smooths nothing; "
            "smoothing='none' leaves the lengths as the one difference.",
}
KWARGS = """
Args: predictions, and of sources, references (a string or a list a row) and inputs those that the metric needs, one
    a row; target_style: the style to be reached; n_boot: resamples for the intervals; any option of the metric but
    `against`.
Returns: each column's score with the ends of its 95% interval (_low, _high), and the signature.
"""


class TstevalMetric(evaluate.Metric):
    """One metric of tsteval, by the name of the configuration."""

    def _info(self):
        if self.config_name not in registry.METRICS:
            raise ValueError(f"name a metric: evaluate.load(folder, name) with a name of {', '.join(registry.METRICS)}")
        metric = registry.METRICS[self.config_name]
        text = datasets.Value("string")
        needed = [COLUMNS[name] for name in ("output", *metric.needs) if name in COLUMNS]
        plain = {name: text for name in dict.fromkeys(needed)}
        several = {name: datasets.Sequence(text) if name == "references" else kind for name, kind in plain.items()}
        description = f"{DESCRIPTION} {metric.name}: {registry.described(metric)}.{OTHERS.get(metric.name, '')}"
        return evaluate.MetricInfo(description=description, citation="",
                                   inputs_description=KWARGS,
                                   features=[datasets.Features(several), datasets.Features(plain)])

    def _compute(self, predictions, sources=None, references=None, inputs=None, target_style="neutral",
                 n_boot=2000, seed=0, **options):
        if "against" in options:
            raise ValueError("a module compares with its references; for against='source' call "
                             "tsteval.evaluation.evaluate")
        given = {"output": predictions, "source": sources or predictions, "reference": references, "input": inputs}
        rows = {name: list(column) for name, column in given.items()
                if column is not None and any(text is not None for text in column)}
        metric = registry.make_metric(registry.METRICS[self.config_name], **options)
        result = evaluation.evaluate(rows, [metric], target_style=target_style, n_boot=n_boot, seed=seed)
        scores = result.summary().iloc[0].drop(["system", "n"]).astype(float).to_dict()
        return scores | {"signature": result.signatures[self.config_name]}
