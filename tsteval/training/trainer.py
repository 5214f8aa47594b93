"""The Trainer of transformers on style sentences: whole pairs in a batch, and the pass that validation likes best"""

import contextlib
import math
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, IterableDataset
from tqdm.auto import tqdm
from transformers import (
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainerState,
    TrainingArguments,
)

from ..models.classifier import StyleClassifier
from .batches import DEFAULT_RATES, Stream, Training, batch_loss, deal_batches, validate
from .checkpoints import STATE_FILE, Checkpoint


def rise_and_fall(step: int, steps: int) -> float:
    """Share of the peak learning rate: up a line over the first tenth of the steps, down a cosine to 0."""
    warm = max(1, steps // 10)
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(steps - warm, 1)))


class Passes(IterableDataset):
    """The batches of a stream, dealt out anew in each pass over it."""

    def __init__(self, stream: Stream, settings: Training):
        self.stream = stream
        self.settings = settings
        self.random = np.random.default_rng(settings.seed)

    def __len__(self) -> int:
        return sum(-(-pairs // self.settings.batch_size) for pairs in self.stream.pairs)

    def __iter__(self) -> Iterator[pd.DataFrame]:
        for piece in self.stream.pieces():
            yield from deal_batches(piece, self.settings, self.random)

    def skip(self, passes: int) -> None:
        """Draw what so many passes draw, so that the next one is dealt as it was in the run that was stopped."""
        for _ in range(passes):
            for _ in self:
                pass


class StyleTrainer(Trainer):
    """A trainer whose batches are tables of sentences, and whose evaluation is that of a style classifier."""

    def __init__(
        self,
        classifier: StyleClassifier,
        passes: Passes,
        validation: pd.DataFrame | None,
        settings: Training,
        folder: Path | str,  # of its states
        callbacks: Sequence[TrainerCallback] = (),
        save: bool = False,  # a state after each pass, even where no pass has to be gone back to
    ):
        early = settings.patience is not None
        arguments = TrainingArguments(
            output_dir=str(folder),
            num_train_epochs=settings.epochs,
            seed=settings.seed,
            max_grad_norm=0,
            logging_strategy="epoch",
            logging_nan_inf_filter=False,
            eval_strategy="no" if validation is None else "epoch",
            save_strategy="epoch" if early or save else "no",
            save_total_limit=1,
            load_best_model_at_end=early,
            metric_for_best_model="validation_loss" if early else None,
            greater_is_better=False if early else None,
            use_cpu=classifier.device.type == "cpu",
            disable_tqdm=True,
            report_to="none",
        )
        arguments._n_gpu = 1  # on several, the batches' tables could not be divided
        optimizer = torch.optim.AdamW(
            [weight for weight in classifier.model.parameters() if weight.requires_grad],
            lr=settings.learning_rate or DEFAULT_RATES[settings.method],
            weight_decay=settings.weight_decay,
        )
        steps = settings.epochs * len(passes)
        super().__init__(
            classifier.model,
            arguments,
            train_dataset=passes,
            eval_dataset=validation,
            callbacks=[*callbacks],
            optimizers=(optimizer, LambdaLR(optimizer, lambda step: rise_and_fall(step, steps))),
        )
        self.remove_callback(PrinterCallback)
        self.classifier = classifier
        self.settings = settings

    def get_train_dataloader(self) -> DataLoader:
        """Batches as they are dealt. A generator of its own leaves the one that dropout draws from alone."""
        generator = torch.Generator()
        return DataLoader(
            self.train_dataset, batch_size=None, collate_fn=_as_it_is, generator=generator
        )

    def floating_point_ops(self, inputs: Any) -> int:
        """Not counted: a table does not say how many tokens it has."""
        return 0

    def compute_loss(self, model, inputs: pd.DataFrame, *_: Any, **__: Any):
        return batch_loss(self.classifier, inputs, self.settings)

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        self.model.eval()
        measured = validate(self.classifier, self.eval_dataset)
        metrics = {f"eval_{name}": value for name, value in measured.items()}
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, metrics
        )
        return metrics

    def prepare_to_go_on(
        self,
        last: Path,  # the folder of a state
    ) -> None:
        """Deal out the passes that are done, and ask for no further one where patience was at its end."""
        state = TrainerState.load_from_json(str(last / STATE_FILE))
        steps = len(self.train_dataset)
        self.train_dataset.skip(state.global_step // steps)
        if self.settings.patience is not None and waited_enough(
            state, steps, self.settings.patience
        ):
            self.args.max_steps = state.global_step

    def history(self) -> pd.DataFrame:
        """One row a pass: loss, and what validation gave. Where a run was taken up, the loss is that of the steps
        since."""
        rows: dict[int, dict[str, float]] = {}
        for entry in self.state.log_history:
            values = {
                name.removeprefix("eval_"): value
                for name, value in entry.items()
                if name == "loss" or name.startswith("eval_")
            }
            if values:
                rows.setdefault(round(entry["epoch"]), {}).update(values)
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("epoch")


def _as_it_is(batch: pd.DataFrame) -> pd.DataFrame:
    return batch


def waited_enough(state: TrainerState, steps: int, patience: int) -> bool:
    """Whether the pass with the least validation loss lies `patience` passes back."""
    return (state.global_step - (state.best_global_step or 0)) // steps >= patience


class EarlyStop(TrainerCallback):
    """Stops after some passes without a better validation loss."""

    def __init__(self, patience: int, steps: int):
        self.patience = patience
        self.steps = steps  # of a pass

    def on_save(self, args, state, control, **_: Any):
        if waited_enough(state, self.steps, self.patience):
            control.should_training_stop = True


class StatesBetween(TrainerCallback):
    """Asks for a state every so many steps. The last step of a pass has one once it is validated."""

    def __init__(self, every: int, steps: int):
        self.every = every
        self.steps = steps  # of a pass

    def on_step_end(self, args, state, control, **_: Any):
        if state.global_step % self.every == 0 and state.global_step % self.steps:
            control.should_save = True


class Bar(TrainerCallback):
    """A bar of steps, with the loss of the last pass."""

    def on_train_begin(self, args, state, control, **_: Any):
        self.bar = tqdm(
            total=state.max_steps, initial=state.global_step, desc="training", unit="step"
        )

    def on_step_end(self, args, state, control, **_: Any):
        self.bar.update()

    def on_log(self, args, state, control, logs: dict[str, float], **_: Any):
        if "loss" in logs:
            self.bar.set_postfix(loss=f"{logs['loss']:.3f}")

    def on_train_end(self, args, state, control, **_: Any):
        self.bar.close()


def fit(
    classifier: StyleClassifier,
    stream: Stream,
    validation: pd.DataFrame | None,
    settings: Training,
    *,
    progress: bool = False,
    checkpoint: Checkpoint | None = None,
    callbacks: Sequence[TrainerCallback] = (),
) -> pd.DataFrame:  # the history
    """Train the weights of a classifier that ask for a gradient, in place."""
    passes = Passes(stream, settings)
    steps = len(passes)
    callbacks = [*callbacks, *[Bar()] * progress]
    if settings.patience is not None:
        callbacks.append(EarlyStop(settings.patience, steps))
    if checkpoint is not None:
        callbacks.append(StatesBetween(checkpoint.every, steps))
    last = None if checkpoint is None else checkpoint.last()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) if checkpoint is None else checkpoint.folder
        with _same_dropout(classifier.device):
            trainer = StyleTrainer(
                classifier, passes, validation, settings, folder, callbacks, save=bool(checkpoint)
            )
        if checkpoint is not None:
            checkpoint.begin()
        if last is not None:
            trainer.prepare_to_go_on(last)
        trainer.train(resume_from_checkpoint=None if last is None else str(last))
    classifier.model.eval()
    return trainer.history()


@contextlib.contextmanager
def _same_dropout(device):
    """Within the block the generators may be seeded anew; behind it dropout draws what follows the first weights."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        yield
