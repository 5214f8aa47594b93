"""Install tsteval. Every value comes from settings.ini, which nbdev reads too."""

from configparser import ConfigParser
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent
ROOMS = sorted(
    path.parent.name for path in HERE.glob("tsteval/*/__init__.py") if path.parent.name != "data"
)


def read_settings():
    """The DEFAULT section of settings.ini."""
    parser = ConfigParser()
    parser.read(HERE / "settings.ini", encoding="utf-8")
    return parser["DEFAULT"]


def supported_pythons(settings):
    """Trove classifiers from min_python to max_python, which share their major version."""
    major, first = settings["min_python"].split(".")
    last = settings["max_python"].split(".")[1]
    return [
        f"Programming Language :: Python :: {major}.{minor}"
        for minor in range(int(first), int(last) + 1)
    ]


settings = read_settings()
extras = {
    key.removesuffix("_requirements").replace("_", "-"): settings[key].split()
    for key in settings
    if key.endswith("_requirements")
}
extras["dev"] = sorted({requirement for extra in extras.values() for requirement in extra})

setup(
    name=settings["lib_name"],
    version=settings["version"],
    description=settings["description"],
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author=settings["author"],
    url=settings["git_url"],
    keywords=settings["keywords"],
    license="Apache-2.0",
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Intended Audience :: Science/Research",
        *supported_pythons(settings),
    ],
    python_requires=f">={settings['min_python']}",
    packages=[settings["lib_path"], *(f"{settings['lib_path']}.{room}" for room in ROOMS)],
    package_data={settings["lib_path"]: ["py.typed", "data/*", "data/*/*"]},
    # an installed package has no nbs/ beside it: `tsteval course` then copies the chapters from here
    data_files=[
        ("share/tsteval/nbs", sorted(str(p.relative_to(HERE)) for p in HERE.glob("nbs/*.ipynb"))),
        *(
            (
                f"share/tsteval/nbs/{folder}",
                sorted(str(p.relative_to(HERE)) for p in HERE.glob(f"nbs/{folder}/*.ipynb")),
            )
            for folder in ("solutions", "more")
        ),
    ],
    install_requires=settings["requirements"].split(),
    extras_require=extras,
    entry_points={"console_scripts": settings["console_scripts"].split()},
    zip_safe=False,
)
