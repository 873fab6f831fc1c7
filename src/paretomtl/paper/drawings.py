"""What draws the figures of a study, by its name."""

from __future__ import annotations

from paretomtl.paper.images.figures import draw_images_lenet, draw_images_resnet
from paretomtl.paper.images.more_figures import (
    draw_ablation_init,
    draw_ablation_release,
    draw_acceptance,
    draw_preferences,
    draw_weights,
)
from paretomtl.paper.many_tasks_figures import draw_many_tasks
from paretomtl.paper.real_data.census_digits_figures import draw_census, draw_three_digits
from paretomtl.paper.real_data.faces_localization_figures import draw_faces, draw_localization
from paretomtl.paper.synthetic_figures import draw_synthetic

DRAWINGS = {
    "synthetic": draw_synthetic,
    "many-tasks": draw_many_tasks,
    "images-lenet": draw_images_lenet,
    "images-resnet": draw_images_resnet,
    "ablation-init": draw_ablation_init,
    "ablation-release": draw_ablation_release,
    "preferences": draw_preferences,
    "weights": draw_weights,
    "acceptance": draw_acceptance,
    "census": draw_census,
    "faces": draw_faces,
    "localization": draw_localization,
    "three-digits": draw_three_digits,
}
