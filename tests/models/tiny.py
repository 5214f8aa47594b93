"""Models of every family with a handful of random weights, and a tokenizer of twenty words."""

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from tsteval.models import causal_lm

MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [
    *MARKS,
    "the",
    "a",
    "cat",
    "dog",
    "sat",
    "ran",
    "on",
    "mat",
    ".",
    "stunning",
    "bridge",
    "opened",
    "in",
    "was",
    "old",
]
TEXTS = [
    "the cat sat .",
    "a dog ran on the mat",
    "the",
    "the stunning bridge was opened in a stunning old cat . the dog",
    "the cat sat .",
]


def tokenizer(framed=True, **settings):
    """Splits at white space; `framed` puts [CLS] and [SEP] around a text."""
    backend = Tokenizer(
        models.WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    if framed:
        backend.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    given = {
        "unk_token": "[UNK]",
        "pad_token": "[PAD]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
        "model_max_length": 32,
    } | settings
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **given)


SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 40,
    "initializer_range": 0.6,
}
CONFIGS = {
    "bert": lambda: transformers.BertConfig(**SIZES),
    "mpnet": lambda: transformers.MPNetConfig(**SIZES, bos_token_id=2, eos_token_id=3),
    "roberta": lambda: transformers.RobertaConfig(**SIZES, bos_token_id=2, eos_token_id=3),
    "distilbert": lambda: transformers.DistilBertConfig(
        dim=16,
        n_layers=2,
        n_heads=2,
        hidden_dim=24,
        max_position_embeddings=40,
        initializer_range=0.6,
    ),
    "deberta": lambda: transformers.DebertaV2Config(**SIZES, pooler_hidden_size=16),
    "electra": lambda: transformers.ElectraConfig(**SIZES, embedding_size=8),
    "gpt2": lambda: transformers.GPT2Config(
        n_embd=16,
        n_layer=2,
        n_head=2,
        n_positions=40,
        initializer_range=0.6,
        bos_token_id=2,
        eos_token_id=3,
    ),
    "llama": lambda: transformers.LlamaConfig(
        **SIZES, num_key_value_heads=1, bos_token_id=2, eos_token_id=3
    ),
    "bart": lambda: transformers.BartConfig(
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=24,
        decoder_ffn_dim=24,
        max_position_embeddings=40,
        init_std=0.6,
        bos_token_id=2,
        eos_token_id=3,
        decoder_start_token_id=3,
        forced_eos_token_id=3,
    ),
    "xlnet": lambda: transformers.XLNetConfig(
        d_model=16,
        n_layer=2,
        n_head=2,
        d_inner=24,
        initializer_range=0.6,
        bos_token_id=2,
        eos_token_id=3,
    ),
}
ENCODERS = ("bert", "mpnet", "roberta", "distilbert", "deberta")
DECODERS = ("gpt2", "llama")


def module(family, auto_class="AutoModelForSequenceClassification", **changes):
    """A model of a family with random weights, the same every time."""
    config = CONFIGS[family]()
    config.update({"vocab_size": len(WORDS), "pad_token_id": 0} | changes)
    torch.manual_seed(1)
    return getattr(transformers, auto_class).from_config(config).eval()


def save(folder, family, auto_class="AutoModelForSequenceClassification", **changes):
    """Write a model and its tokenizer into a folder."""
    module(family, auto_class, **changes).save_pretrained(folder)
    tokenizer(framed=family not in DECODERS).save_pretrained(folder)
    return folder


def beginnings_read(monkeypatch):
    """The tokens of each beginning that several rows share, as language models read them once from now on."""
    read = []
    read_once = causal_lm.read_once

    def recorded(module, beginning, n):
        read.append([*beginning])
        return read_once(module, beginning, n)

    monkeypatch.setattr(causal_lm, "read_once", recorded)
    return read
