"""From results to figures, and to a page."""

from paretomtl.report._comparison import draw_comparison
from paretomtl.report._front import draw_front
from paretomtl.report._images import draw_images_lenet, draw_images_resnet
from paretomtl.report._many import draw_many_tasks
from paretomtl.report._more_images import (
    draw_ablation_init,
    draw_ablation_release,
    draw_acceptance,
    draw_preferences,
    draw_weights,
)
from paretomtl.report._sheet import draw_sheet
from paretomtl.report._synthetic import draw_synthetic
from paretomtl.report._tables import draw_faces, draw_localization
from paretomtl.report._tasks import draw_census, draw_three_digits
from paretomtl.report.page import write_page

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
"""What draws the figures of a study, by its name."""

__all__ = ["DRAWINGS", "draw_comparison", "draw_front", "draw_sheet", "draw_synthetic", "write_page"]
