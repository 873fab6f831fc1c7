"""Problems to train on: models, losses, data, and the true front if it is known."""

from paretomtl.problems._census.files import Census, load_census, prepare_census
from paretomtl.problems._census.problem import census
from paretomtl.problems._localization.files import load_localization, prepare_localization
from paretomtl.problems._localization.frames import Frames
from paretomtl.problems._localization.problem import localization
from paretomtl.problems._losses import (
    accuracy,
    area_under_curve,
    binary_accuracy,
    binary_cross_entropies,
    cross_entropies,
    face_losses,
    pose_losses,
)
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
from paretomtl.problems._networks.lenet import LeNet
from paretomtl.problems._networks.posenet import PoseNet
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
from paretomtl.problems._true_front import TrueFront
from paretomtl.problems._utkface.files import load_utkface, prepare_utkface
from paretomtl.problems._utkface.folder import Faces
from paretomtl.problems._utkface.problem import utkface
from paretomtl.problems.per_task import PerTask
from paretomtl.problems.registry import PROBLEMS

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
    "TrueFront",
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
