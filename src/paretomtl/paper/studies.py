"""The studies by name."""

from __future__ import annotations

from paretomtl.paper import many_tasks as _many
from paretomtl.paper import synthetic as _synthetic
from paretomtl.paper.images import lenet as _image_claims
from paretomtl.paper.images import more_claims as _more_claims
from paretomtl.paper.images import resnet as _resnet_claims
from paretomtl.paper.images import studies as _image_studies
from paretomtl.paper.real_data import claims as _task_claims
from paretomtl.paper.real_data import studies as _task_studies
from paretomtl.paper.study import Study

STUDIES = {
    "synthetic": Study(
        "The paper's synthetic example: convergence, initial phase, difficulty, preference sets, three objectives.",
        _synthetic.cells,
        _synthetic.claims,
        _synthetic.facts,
    ),
    "many-tasks": Study(
        "The synthetic problem with 2 to 10 objectives, and 5 to 100 preference vectors: what is covered.",
        _many.cells,
        _many.claims,
        _many.facts,
    ),
    "images-lenet": Study(
        "LeNet on the three sets of image pairs: seven methods, the paper's settings and the strong recipe.",
        _image_studies.images_lenet,
        _image_claims.lenet_claims,
        _image_claims.lenet_facts,
        shares=("ablation-init", "ablation-release", "preferences", "weights"),
    ),
    "images-resnet": Study(
        "ResNet-18 on the three sets: what is optimized, and what is left of it on the test split.",
        _image_studies.images_resnet,
        _resnet_claims.resnet_claims,
        _resnet_claims.resnet_facts,
    ),
    "ablation-init": Study(
        "Pareto MTL with and without its initial phase, on clothing.",
        _image_studies.ablation_init,
        _more_claims.init_claims,
        _more_claims.no_facts,
        shares=("images-lenet",),
    ),
    "ablation-release": Study(
        "The constraints dropped at the end, on clothing: the snapshot before, and what became of it.",
        _image_studies.ablation_release,
        _more_claims.release_claims,
        _more_claims.release_facts,
        shares=("images-lenet",),
    ),
    "preferences": Study(
        "Sets of preference vectors on MultiMNIST: random, biased, close together, few and many.",
        _image_studies.preference_sets,
        _more_claims.preference_claims,
        _more_claims.preference_facts,
        shares=("images-lenet",),
    ),
    "weights": Study(
        "The weights of the tasks over training on MultiMNIST.",
        _image_studies.weights,
        _more_claims.weight_claims,
        _more_claims.weight_facts,
        shares=("images-lenet",),
    ),
    "acceptance": Study(
        "How near the regenerated canvases come to the lost ones: accuracies of separate networks.",
        _image_studies.acceptance,
        _more_claims.no_claims,
        _more_claims.acceptance_facts,
    ),
    "census": Study(
        "Census income, three tasks: 5 and 25 preferences, random search, two networks, scaled losses.",
        _task_studies.census,
        _task_claims.census_claims,
        _task_claims.census_facts,
    ),
    "faces": Study(
        "Gender, race and age of faces: the paper's four vectors and all methods of its table.",
        _task_studies.faces,
        _task_claims.table_claims,
        _task_claims.table_facts,
    ),
    "localization": Study(
        "Position and orientation of a camera: the paper's table, on a stand-in for its data.",
        _task_studies.localization,
        _task_claims.table_claims,
        _task_claims.table_facts,
    ),
    "three-digits": Study(
        "Three digits on a canvas: 5, 15 and 25 preferences beside weights.",
        _task_studies.three_digits,
        _more_claims.no_claims,
        _task_claims.digits_facts,
    ),
}
"""What ``paretomtl reproduce`` can run."""
