"""Methods in words, with citations, made from the metrics and their signatures"""

import re
from collections.abc import Mapping
from typing import Protocol

import pandas as pd

from ..core.display import displayable
from ..core.metric import Metric
from ..core.resample import FEW

_WORKS = {  # key -> how the text names it, and the whole entry
    "banerjee2005": (
        "Banerjee and Lavie 2005",
        "S. Banerjee and A. Lavie (2005). METEOR: an automatic metric for MT evaluation with improved "
        "correlation with human judgments. ACL workshop on evaluation measures for MT and summarization.",
    ),
    "cloudera2022": (
        "Cloudera Fast Forward Labs 2022",
        "Cloudera Fast Forward Labs (2022). Text Style Transfer, chapter on evaluation.",
    ),
    "deepchecks2024": (
        "Deepchecks 2024",
        "Deepchecks (2024). Properties, reference page of the documentation on evaluating language "
        "models.",
    ),
    "efron1979": (
        "Efron 1979",
        "B. Efron (1979). Bootstrap methods: another look at the jackknife. Annals of Statistics 7(1).",
    ),
    "chen1999": (
        "Chen and Goodman 1999",
        "S. F. Chen and J. Goodman (1999). An empirical study of smoothing techniques for language modeling. "
        "Computer Speech and Language 13.",
    ),
    "flesch1948": (
        "Flesch 1948",
        "R. Flesch (1948). A new readability yardstick. Journal of Applied Psychology 32(3).",
    ),
    "heilman2014": (
        "Heilman et al. 2014",
        "M. Heilman et al. (2014). Predicting grammaticality on an ordinal scale. ACL.",
    ),
    "holm1979": (
        "Holm 1979",
        "S. Holm (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of "
        "Statistics 6(2).",
    ),
    "kann2018": (
        "Kann et al. 2018",
        "K. Kann, S. Rothe and K. Filippova (2018). Sentence-level fluency evaluation: references help, but "
        "can be spared! CoNLL.",
    ),
    "koehn2004": (
        "Koehn 2004",
        "P. Koehn (2004). Statistical significance tests for machine translation evaluation. EMNLP.",
    ),
    "kusner2015": (
        "Kusner et al. 2015",
        "M. J. Kusner, Y. Sun, N. I. Kolkin and K. Q. Weinberger (2015). From word embeddings to document "
        "distances. ICML.",
    ),
    "lau2020": (
        "Lau et al. 2020",
        "J. H. Lau, C. Armendariz, S. Lappin, M. Purver and C. Shu (2020). How furiously can colorless green "
        "ideas sleep? Sentence acceptability in context. TACL 8.",
    ),
    "lin2004": (
        "Lin 2004",
        "C.-Y. Lin (2004). ROUGE: a package for automatic evaluation of summaries. ACL workshop Text "
        "Summarization Branches Out.",
    ),
    "mir2019": (
        "Mir et al. 2019",
        "R. Mir, B. Felbo, N. Obradovich and I. Rahwan (2019). Evaluating style transfer for text. NAACL.",
    ),
    "noreen1989": (
        "Noreen 1989",
        "E. W. Noreen (1989). Computer-intensive methods for testing hypotheses: an introduction. Wiley.",
    ),
    "papineni2002": (
        "Papineni et al. 2002",
        "K. Papineni, S. Roukos, T. Ward and W.-J. Zhu (2002). BLEU: a method for automatic evaluation "
        "of machine translation. ACL.",
    ),
    "pauls2012": (
        "Pauls and Klein 2012",
        "A. Pauls and D. Klein (2012). Large-scale syntactic language modeling with treelets. ACL.",
    ),
    "pavlick2016": (
        "Pavlick and Tetreault 2016",
        "E. Pavlick and J. Tetreault (2016). An empirical analysis of formality in online communication. "
        "TACL 4.",
    ),
    "popovic2015": (
        "Popović 2015",
        "M. Popović (2015). chrF: character n-gram F-score for automatic MT evaluation. WMT.",
    ),
    "post2018": ("Post 2018", "M. Post (2018). A call for clarity in reporting BLEU scores. WMT."),
    "reimers2019": (
        "Reimers and Gurevych 2019",
        "N. Reimers and I. Gurevych (2019). Sentence-BERT: sentence embeddings using Siamese "
        "BERT-networks. EMNLP.",
    ),
    "rottger2021": (
        "Röttger et al. 2021",
        "P. Röttger et al. (2021). HateCheck: functional tests for hate speech detection models. ACL.",
    ),
    "rubner1998": (
        "Rubner et al. 1998",
        "Y. Rubner, C. Tomasi and L. Guibas (1998). A metric for distributions with applications to image "
        "databases. ICCV.",
    ),
    "snover2006": (
        "Snover et al. 2006",
        "M. Snover, B. Dorr, R. Schwartz, L. Micciulla and J. Makhoul (2006). A study of translation edit rate with "
        "targeted human annotation. AMTA.",
    ),
    "sundararajan2017": (
        "Sundararajan et al. 2017",
        "M. Sundararajan, A. Taly and Q. Yan (2017). Axiomatic attribution for deep networks. ICML.",
    ),
    "pauli2025": (
        "Pauli et al. 2025",
        "A. Pauli, I. Augenstein and I. Assent (2025). Mind the style gap: meta-evaluation of style and "
        "attribute transfer metrics. Findings of EMNLP.",
    ),
    "warstadt2019": (
        "Warstadt et al. 2019",
        "A. Warstadt, A. Singh and S. R. Bowman (2019). Neural network acceptability judgments. TACL 7.",
    ),
    "zhang2020": (
        "Zhang et al. 2020",
        "T. Zhang, V. Kishore, F. Wu, K. Q. Weinberger and Y. Artzi (2020). BERTScore: evaluating text "
        "generation with BERT. ICLR.",
    ),
}

_INTERVALS = (
    "The 95% intervals come from {n_boot:,} bootstrap resamples of the sources [efron1979; seed {seed}], and of fewer "
    f"than {FEW} sources from the jackknife and Student's t.",
    "Systems were compared on the sources that they share by paired bootstrap [koehn2004], and on fewer than "
    f"{FEW} by swapping their outputs [noreen1989], with p-values corrected over all systems that are compared with "
    "one and over the measures [holm1979].",
)

_KEYS = re.compile(r"\[((?:\w+\d{4})(?:; [\w ]+)*)\]")


def _cited(text: str) -> tuple[str, list[str]]:
    """The text with names for keys, and the keys."""
    met: list[str] = []

    def name(match: re.Match) -> str:
        parts = match[1].split("; ")
        met.extend(part for part in parts if part in _WORKS)
        names = "; ".join(_WORKS[part][0] if part in _WORKS else part for part in parts)
        return f"({names})"

    return _KEYS.sub(name, text), list(dict.fromkeys(met))


def _settings(signature: str) -> str:
    """The fields of a signature as words; of a model only its name, since the signature itself stands elsewhere."""
    fields = (field.partition(":") for field in signature.split("|"))
    settings = [
        f"{name} {value.partition('@')[0][:40]}"
        for name, colon, value in fields
        if colon and name != "version"
    ]
    return f" (settings: {', '.join(settings)})" if settings else ""


class Evaluated(Protocol):
    """Scores of systems, as reports, tables and galleries read them; `runs.results.SystemScores` is one."""

    per_pair: pd.DataFrame  # one row an output, with what the metrics wrote
    metrics: list[Metric]
    models: Mapping[str, str]  # model name -> checksum of its weights
    n_boot: int
    seed: int
    systems: list[str]
    columns: list[str]  # those of every metric
    headings: dict[str, str]  # how they are called
    signatures: dict[str, str]  # metric -> what someone else needs to repeat its score
    row_signatures: dict[str, str]
    n_outputs: int
    remarks: list[str]  # sentences on how the scores were made
    unfit: Mapping[str, str]  # column -> why nothing is called better by it
    reference_system: str  # the system that the others are compared with

    def heading(self, column: str) -> str: ...
    def summary(self) -> pd.DataFrame: ...
    def notes(self) -> pd.DataFrame: ...
    def comparisons(self) -> pd.DataFrame: ...
    def compare(self, a: str, b: str) -> pd.DataFrame: ...
    def tallies(self) -> list[dict]: ...


def methods_paragraph(
    result: Evaluated,
) -> tuple[str, list[str]]:  # the paragraph, and the works it cites, in the order of the alphabet
    """How the scores were made, in words for a paper, with citations."""
    systems = result.systems
    named = (
        f"the system {systems[0]}"
        if len(systems) == 1
        else f"{len(systems)} systems ({', '.join(systems)})"
    )
    sentences = [f"We scored {result.n_outputs:,} outputs of {named}."]
    for metric in result.metrics:
        sentence = metric.methods or (
            f"{result.heading(metric.columns[0])}: {metric.description or 'a measure of our own'}"
        )
        sentences.append(f"{sentence}{_settings(result.signatures[metric.name])}.")
    sentences += [
        sentence.format(n_boot=result.n_boot, seed=result.seed)
        for sentence in _INTERVALS[: 1 + (len(systems) > 1)]
    ]
    sentences += result.remarks
    text = ""
    keys = []
    for part in sentences:
        cited, met = _cited(part) if "[" in part else (part, [])
        text = f"{text} {cited}"
        keys = keys + met
    return displayable(text.strip()), [_WORKS[key][1] for key in sorted(set(keys))]
