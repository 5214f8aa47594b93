"""What sacreBLEU computes where it is installed: tokenisers of scripts without spaces, and the edits of TER"""

from collections.abc import Callable

from ..core.assets import AssetError
from .matching import remember

# the tokenisers that are sacreBLEU's own code and models, and what each needs
HANDED_OVER = {
    "zh": "pip install sacrebleu",
    "ja-mecab": "pip install 'sacrebleu[ja]'",
    "ko-mecab": "pip install 'sacrebleu[ko]'",
    # sacreBLEU fetches its model from the network the first time
    "flores200": "pip install sacrebleu sentencepiece, and be connected the first time, when it fetches its model",
}


def load_sacrebleu(
    what: str,  # that it is to compute, for the message
):
    """The package sacrebleu. Raises: AssetError where it is not installed."""
    try:
        import sacrebleu.metrics
    except ImportError as error:
        raise AssetError(
            f"{what} is computed by sacreBLEU, which is not installed. To mend it: pip install sacrebleu"
        ) from error
    return sacrebleu


@remember
def handed_over_tokenizer(
    name: str,  # a key of `HANDED_OVER`
) -> Callable[[str], list[str]]:
    """A tokeniser of sacreBLEU. Raises: AssetError where sacreBLEU, or what this tokeniser needs beside it, is missing.

    Source: Post 2018.
    """
    sacrebleu = load_sacrebleu(f"tokenize {name!r}")
    try:
        split = sacrebleu.metrics.BLEU(tokenize=name).tokenizer
    # a missing library, a dictionary of another kind, no network; sacreBLEU leaves Python where a certificate is refused
    except (Exception, SystemExit) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise AssetError(
            f"tokenize {name!r}: sacreBLEU cannot make it here ({reason:.200}). To mend it: {HANDED_OVER[name]}"
        ) from error
    return lambda text: split(text).split()
