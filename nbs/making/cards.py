"""Model cards of the classifiers that the package ships: prose, settings, measured figures, checksums."""

from pathlib import Path

from tsteval.core.assets import file_sha256, read_json
from tsteval.core.classifier import STYLE_FILE, STYLE_SETTINGS, settings_line
from tsteval.core.training import Training


def write_card(folder: Path | str, description: str, settings: Training, results: list[dict], checksums: dict[str, str]) -> None:
    """Write a saved classifier's README.md.

    `description` is the card's prose in Markdown, `results` the rows of its table, `checksums` the SHA-256 of what it was
    trained on, by name.
    """
    folder = Path(folder)
    temperature = read_json(folder / STYLE_FILE, STYLE_SETTINGS)["temperature"]
    checksums = {"adapter_model.safetensors": file_sha256(folder / "adapter_model.safetensors"), **checksums}
    lines = [description, "## Settings", "", settings_line(settings, temperature), "", "## Results", "", markdown_table(results), "",
             "## Checksums", "", *(f"- {name}: {digest}" for name, digest in checksums.items()), ""]
    (folder / "README.md").write_text("\n".join(lines), encoding="utf-8")


def markdown_table(rows: list[dict]) -> str:
    """Rows as a Markdown table; fractions with three digits."""
    cells = [[f"{value:.3f}" if isinstance(value, float) else str(value) for value in row.values()] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in [list(rows[0]), ["---"] * len(rows[0]), *cells])
