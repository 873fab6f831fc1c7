"""Extensions of a front: what to train next, and one front of several."""

from __future__ import annotations

from typing import Self

from paretomtl.front._constructors import FrontConstructors
from paretomtl.front._data import FrontData
from paretomtl.front.gaps import Gaps, front_gaps
from paretomtl.front.joining import join_fronts


class FrontExtensions(FrontConstructors):
    """Ways to extend a :class:`paretomtl.Front` by further models."""

    def gaps(self, count: int = 1, *, split: str | None = None) -> Gaps[Self]:
        """Find the largest gaps of the front, and what to train to fill them (NISE, Cohon 1978, for any m).

        A gap lies between two neighbours among the non-dominated models: no other model is in the ball that has
        both on its surface, with losses divided by their ranges. The largest come first, and each counts as filled in
        its middle before the next is looked for. New importances are normal to the gap; new directions point to its
        middle. A gap is left out where nothing can be gained; ``remarks`` say so. Broken models do not count.

        Args:
            count: how many. There may be fewer that are worth it, or none.
            split: the split of the losses; :attr:`ranking_split` by default.

        Returns:
            The arguments of a run. It begins with the nearer neighbours, and :meth:`joined` makes one front of both.

        Example:
            >>> import paretomtl as pm
            >>> problem, options = pm.problems.quadratic(), {"epochs": 300, "progress": "quiet", "device": "cpu"}
            >>> front = pm.fit(problem, "linear", preferences=3, **options)
            >>> gaps = front.gaps(2)
            >>> gaps.neighbours, gaps.begins, gaps.subproblems
            (((0, 1), (1, 2)), (1, 1), (3, 4))
            >>> more = {"preferences": gaps.preferences, "only": gaps.subproblems, "start": gaps.start}
            >>> whole = front.joined(pm.fit(problem, "linear", **more, **options))
            >>> len(whole), whole.hypervolume([1, 1]) > front.hypervolume([1, 1])
            (5, True)
        """
        return front_gaps(self, count, split)

    def joined(self, *others: FrontData) -> Self:
        """One front of this one and others: all models, with the numbers that they are asked for by.

        Models of a run for :meth:`gaps`, or with ``only``, keep their numbers. Those of any other run get the next
        ones. Regions are then those of all rows. Splits and metrics that one front lacks are left out. Method, seed,
        decisions and reference point are those of this front.

        Args:
            others: fronts of the same tasks, the same model, the same data and the same reading of preferences.

        Example:
            >>> import paretomtl as pm
            >>> one = pm.Front.from_losses([[0.0, 1.0], [1.0, 0.0]], tasks=["a", "b"])
            >>> other = pm.Front.from_losses([[0.4, 0.4]], tasks=["a", "b"])
            >>> one.joined(other).hypervolume([1, 1])
            0.36
        """
        return join_fronts(self, others)
