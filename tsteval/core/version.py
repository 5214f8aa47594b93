"""The package's version, from the one place where it is written"""

from .. import __version__
