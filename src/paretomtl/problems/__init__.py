"""What to train on: models, losses, data, and the true front where it is known."""

from collections.abc import Callable

from paretomtl.problems._census.files import Census, load_census, prepare_census
from paretomtl.problems._census.problem import census
from paretomtl.problems._localization.frames import Frames
from paretomtl.problems._localization.problem import load_localization, localization, prepare_localization
from paretomtl.problems._losses import area_under_curve, binary_accuracy, binary_cross_entropies
from paretomtl.problems._multi_digits import multi_digits
from paretomtl.problems._multi_mnist.canvases import Canvases
from paretomtl.problems._multi_mnist.files import prepare_canvases
from paretomtl.problems._multi_mnist.problem import (
    multi_fashion,
    multi_fashion_3,
    multi_fashion_mnist,
    multi_mnist,
    multi_mnist_3,
)
from paretomtl.problems._named import NamedProblem
from paretomtl.problems._networks.lenet import LeNet, accuracy, cross_entropies
from paretomtl.problems._networks.posenet import PoseNet, pose_losses
from paretomtl.problems._networks.resnet import ResNet18
from paretomtl.problems._networks.tabular import MLP, MixtureOfExperts
from paretomtl.problems._problem import (
    Data,
    Metric,
    OptimizerFactory,
    Problem,
    Recipe,
    SchedulerFactory,
)
from paretomtl.problems._quadratic import quadratic
from paretomtl.problems._synthetic import synthetic
from paretomtl.problems._true_front import Truth
from paretomtl.problems._utkface.folder import Faces
from paretomtl.problems._utkface.problem import face_losses, load_utkface, prepare_utkface, utkface
from paretomtl.problems.per_task import PerTask

PROBLEMS: dict[str, Callable[..., Problem]] = {
    "synthetic": synthetic,
    "quadratic": quadratic,
    "multi-digits": multi_digits,
    "multi-mnist": multi_mnist,
    "multi-fashion": multi_fashion,
    "multi-fashion-mnist": multi_fashion_mnist,
    "multi-mnist-3": multi_mnist_3,
    "multi-fashion-3": multi_fashion_3,
    "census": census,
    "utkface": utkface,
    "localization": localization,
}
"""The built-in problems by name."""

__all__ = [
    "MLP",
    "PROBLEMS",
    "Canvases",
    "Census",
    "Data",
    "Faces",
    "Frames",
    "LeNet",
    "Metric",
    "MixtureOfExperts",
    "NamedProblem",
    "OptimizerFactory",
    "PerTask",
    "PoseNet",
    "Problem",
    "Recipe",
    "ResNet18",
    "SchedulerFactory",
    "Truth",
    "accuracy",
    "area_under_curve",
    "binary_accuracy",
    "binary_cross_entropies",
    "census",
    "cross_entropies",
    "face_losses",
    "load_census",
    "load_localization",
    "load_utkface",
    "localization",
    "multi_digits",
    "multi_fashion",
    "multi_fashion_3",
    "multi_fashion_mnist",
    "multi_mnist",
    "multi_mnist_3",
    "pose_losses",
    "prepare_canvases",
    "prepare_census",
    "prepare_localization",
    "prepare_utkface",
    "quadratic",
    "synthetic",
    "utkface",
]
