"""The methods of a front that compare it with other fronts, or with points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from torch import Tensor

from paretomtl.front import indicators, union_indicators
from paretomtl.front._constructors import FrontConstructors
from paretomtl.front.union_indicators import R2_WEIGHTS
from paretomtl.front.utilities import UTILITIES, Kind


class FrontComparison(FrontConstructors):
    """The part of a :class:`paretomtl.Front` that compares it with others."""

    def tight_reference(self, *others: Self, split: str | None = None) -> tuple[float, ...]:
        """A reference point just beyond the models, for a :meth:`hypervolume` that tells fronts apart.

        In each task it is w + max(abs(w), w - z) / 10, with the worst loss w and the best loss z of the non-dominated
        solutions: 1.1 w if no loss is negative, and a change of units changes it alike. If w and z are zero, it is 0.1.
        It is not beyond ``reference``, and models that are do not count, unless all are. A front that is far
        behind may have no model within it: :meth:`hypervolume` refuses that point then.

        Args:
            others: fronts to compare with. Their models count as if all fronts were one; separate networks, which
                are not a front, do not.
            split: the split to measure on; :attr:`ranking_split` by default.

        Example:
            >>> import paretomtl as pm
            >>> one = pm.Front.from_losses([[0.2, 1.0], [1.0, 0.4]], tasks=["a", "b"])
            >>> other = pm.Front.from_losses([[0.4, 0.6], [2.0, 0.2]], tasks=["a", "b"])
            >>> point = one.tight_reference(other)
            >>> [round(value, 3) for value in point]
            [2.2, 1.1]
            >>> round(one.hypervolume(point), 3), round(other.hypervolume(point), 3)
            (0.92, 0.98)
        """
        return indicators.front_tight_reference(self, others, split)

    def delta_m(
        self,
        baseline: Self | Sequence[float],
        metric: str | Sequence[str] | None = None,
        split: str | None = None,
    ) -> Tensor:
        """Δm (Maninis et al. 2019) of each model: how much worse than separate networks, ``[K]``.

        Δm = 100/m Σ_i s_i (M_i - B_i) / B_i in percent, with the value M_i of task i, that of its own network B_i, and
        s_i = 1 if lower values are better, else -1. **Lower is better, and below zero is better than separate
        networks on average**: this is the drop of performance, as CAGrad (Liu et al. 2021) and Nash-MTL (Navon et al.
        2022) have it. Maninis et al. have the opposite sign. NaN where a value is not finite.

        Args:
            baseline: a front of "single-task", whose networks count in their own task alone; a front with one model;
                or one number per task. All must be positive.
            metric: what is compared: losses by default; "accuracy" stands for the metric ``TASK accuracy`` of each
                task; or one name for each task, of a metric or a task, which stands for its loss.
            split: the split to measure on; :attr:`ranking_split` by default.

        Example:
            >>> import paretomtl as pm
            >>> front = pm.Front.from_losses([[0.2, 1.0], [0.4, 0.5]], tasks=["a", "b"])
            >>> [round(value, 3) for value in front.delta_m([0.25, 0.5]).tolist()]
            [40.0, 30.0]
        """
        return indicators.front_delta_m(self, baseline, metric, split)

    def regret(
        self,
        *others: Self,
        split: str | None = None,
        metric: str | Sequence[str] | None = None,
        utilities: int = UTILITIES,
        kind: Kind = "both",
        seed: int = 0,
    ) -> float:
        """Regret over random utilities: what users lose who choose from this front on validation, measured on test.

        The expected difference of utilities of Hansen and Jaszkiewicz (1998, R2), to the best of all fronts, and with
        a choice that has to generalise. It is the mean over utilities u of

            u(test losses of the model with the least u on :attr:`ranking_split`) - min u(test losses),

        with the minimum over all models of all fronts. It is at least 0, and 0 means that nobody could have chosen
        better. A utility is a weighted sum Σ_i w_i l_i or, every second time, a weighted maximum (Tchebycheff)
        max_i w_i l_i / max_i w_i: a sum never asks for the inside of a concave part of a front, a maximum does. The
        weights w are uniform on the simplex. Models with the same u on the ranking split share the choice.

        The losses l are scaled: in each task 0 is the best loss of all fronts on the ranking split, and 1 the worst one
        of their non-dominated models there. So units do not matter, and a regret of 0.05 is as if every loss were
        worse by a twentieth of that range. Models beyond ``reference`` have no part in the worst, unless all are. A
        task whose losses are all the same does not count. Nor do models with a loss that is not finite.

        Args:
            others: fronts to compare with; separate networks, which are not a front, do not count. Without any, what
                is left is the regret of the choice within this front.
            split: where the choice is measured; test by default, and the ranking split without one.
            metric: what is compared in place of losses, as in :meth:`delta_m`.
            utilities: how many are drawn.
            kind: "linear" or "tchebycheff" for one kind alone.
            seed: draws other utilities; the global random state has no part in it.

        Example:
            >>> import paretomtl as pm
            >>> one = pm.Front.from_losses([[0.0, 1.0], [1.0, 0.0]], tasks=["a", "b"])
            >>> other = pm.Front.from_losses([[0.6, 0.6]], tasks=["a", "b"])  # in a concave part
            >>> one.regret(other, kind="linear"), round(one.regret(other, kind="tchebycheff"), 2)
            (0.0, 0.05)
        """
        return union_indicators.front_regret(self, others, split, metric, utilities, kind, seed)

    def r2(self, *others: Self, split: str | None = None, weights: int = R2_WEIGHTS) -> float:
        """R2 (Hansen and Jaszkiewicz 1998, unary): the mean weighted Tchebycheff distance to the ideal point.

        R2 = 1/n Σ_w min_k max_i w_i l_ki over n weights w of the simplex, an even lattice. Lower is better. The losses
        l are scaled by all fronts on this split, as in :meth:`regret`, so that the ideal point of all is 0. A front
        that weakly dominates another has no larger R2, if both are compared with the same fronts.

        Args:
            others: fronts to compare with; separate networks do not count. Compare numbers only for the same fronts.
            split: the split to measure on; :attr:`ranking_split` by default.
            weights: how many at least; the lattice is the smallest that has them.

        Example:
            >>> import paretomtl as pm
            >>> one = pm.Front.from_losses([[0.0, 1.0], [1.0, 0.0]], tasks=["a", "b"])
            >>> other = pm.Front.from_losses([[0.2, 0.2]], tasks=["a", "b"])
            >>> round(one.r2(other), 3), round(other.r2(one), 3)
            (0.247, 0.151)
        """
        return union_indicators.front_r2(self, others, split, weights)

    def igd_plus(
        self, points: Tensor | Self | Sequence[Self], split: str | None = None, *, scaled: bool = False
    ) -> float:
        """IGD+ (Ishibuchi et al. 2015): by how much the models fall short of points of a front, on average.

        The mean over points p of min_k ||max(L_k - p, 0)||, in the units of the losses.

        Args:
            points: ``[n, m]``, of the true front (``problem.truth.front(1000)``) or of the best known one. Or a front,
                or several: then the points are the non-dominated models of these and of this one, equal ones once.
                Separate networks do not count.
            split: the split to measure on; :attr:`ranking_split` by default.
            scaled: whether losses are scaled by all fronts, as in :meth:`r2`, so that units do not matter.

        Example:
            >>> import paretomtl as pm
            >>> one = pm.Front.from_losses([[0.0, 1.0], [1.0, 0.0]], tasks=["a", "b"])
            >>> other = pm.Front.from_losses([[0.5, 0.2], [2.0, 2.0]], tasks=["a", "b"])
            >>> one.igd_plus(other) == 0.5 / 3, other.igd_plus([one]) == (0.5 + 0.2) / 3
            (True, True)
        """
        return union_indicators.front_igd_plus(self, points, split, scaled)
