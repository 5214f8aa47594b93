"""The version that signatures carry is the one that is released."""

import configparser
from pathlib import Path

import tsteval
from tsteval.core.version import __version__


def test_the_version_is_that_of_the_settings():
    settings = configparser.ConfigParser()
    settings.read(Path(__file__).parents[2] / "settings.ini", encoding="utf-8")
    assert __version__ == tsteval.__version__ == settings["DEFAULT"]["version"]
