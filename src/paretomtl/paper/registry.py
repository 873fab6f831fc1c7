"""The studies by name.

A new study is one module with a ``STUDY`` in it, and one line in :data:`REGISTRY`. Names and titles are known without
an import, so that commands list studies without loading torch, matplotlib or any study.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from paretomtl.paper.study import Study


class Entry(NamedTuple):
    """A line of the registry.

    Attributes:
        module: the module with the study, below ``paretomtl.paper``.
        brief: what it studies, in at most 56 letters, for lists.
        title: a summary of the study in one sentence.
    """

    module: str
    brief: str
    title: str


REGISTRY = {
    "synthetic": Entry(
        "synthetic",
        "concave front: convergence, difficulty, preferences",
        "The paper's synthetic example: convergence, initial phase, difficulty, preference sets, three objectives.",
    ),
    "many-tasks": Entry(
        "many_tasks",
        "2 to 10 objectives, 5 to 100 preference vectors",
        "The synthetic problem with 2 to 10 objectives, and 5 to 100 preference vectors: coverage of the front.",
    ),
    "images-lenet": Entry(
        "images.lenet",
        "LeNet, three image sets, seven methods",
        "LeNet on the three sets of image pairs: seven methods, the paper's settings and the strong recipe.",
    ),
    "images-resnet": Entry(
        "images.resnet",
        "ResNet-18, three image sets: training against test",
        "ResNet-18 on the three sets: training losses, and how much of the gain is left on the test split.",
    ),
    "ablation-init": Entry(
        "images.ablation_init",
        "Pareto MTL with and without its initial phase",
        "Pareto MTL with and without its initial phase, on clothing.",
    ),
    "ablation-release": Entry(
        "images.ablation_release",
        "constraints dropped at the end: before and after",
        "The constraints dropped at the end, on clothing: before and after.",
    ),
    "preferences": Entry(
        "images.preferences",
        "sets of preference vectors on MultiMNIST",
        "Sets of preference vectors on MultiMNIST: random, biased, close together, few and many.",
    ),
    "weights": Entry(
        "images.weights",
        "weights of the tasks over training",
        "The weights of the tasks over training on MultiMNIST.",
    ),
    "acceptance": Entry(
        "images.acceptance",
        "regenerated images against the published ones",
        "How close the regenerated canvases come to the lost ones: accuracies of separate networks.",
    ),
    "census": Entry(
        "real_data.census",
        "census income: 5 and 25 models, two networks",
        "Census income, three tasks: 5 and 25 preferences, random search, two networks, scaled losses.",
    ),
    "faces": Entry(
        "real_data.faces",
        "faces: the paper's four vectors, all methods",
        "Gender, race and age of faces: the paper's four vectors and all methods of its table.",
    ),
    "localization": Entry(
        "real_data.localization",
        "camera poses: the paper's table, on stand-in data",
        "Position and orientation of a camera: the paper's table, on a stand-in for its data.",
    ),
    "three-digits": Entry(
        "real_data.three_digits",
        "three digits: 5 to 50 models, and fixed weights",
        "Three digits on a canvas: 5 to 50 preference vectors, and weights.",
    ),
    "beyond": Entry(
        "evidence.beyond",
        "fifteen ways to a set of models: which is best?",
        "Not in the paper: which set of models is best for its cost, fifteen ways with one recipe.",
    ),
}
"""Each study by name. Lists and ``paretomtl reproduce all`` follow this order."""


class _Studies(Mapping[str, "Study"]):
    """The studies by name; a study is imported lazily."""

    def __getitem__(self, name: str) -> Study:
        module = f"{__package__}.{REGISTRY[name].module}"
        try:
            study: Study = importlib.import_module(module).STUDY
        except Exception as error:
            raise ImportError(
                f"The study {name!r} must be a module that can be imported and that has a STUDY. Importing '{module}' "
                f"raised {type(error).__name__}: {error}"
            ) from error
        return study

    def __contains__(self, name: object) -> bool:
        return name in REGISTRY

    def __iter__(self) -> Iterator[str]:
        return iter(REGISTRY)

    def __len__(self) -> int:
        return len(REGISTRY)


STUDIES: Mapping[str, Study] = _Studies()
"""The studies that ``paretomtl reproduce`` can run. Names need no import; ``STUDIES[name]`` imports the study."""

STUDY_TITLES = {name: entry.title for name, entry in REGISTRY.items()}
"""A summary of each study in one sentence."""

STUDY_BRIEFS = {name: entry.brief for name, entry in REGISTRY.items()}
"""A summary of each study in a few words."""
