"""The study ``beyond``: every arm with the same recipe, seeds, number of models and epochs.

The recipes were tuned for linear scalarization, on validation; no arm got another one. Parts of what is measured here
were found before: the p-norm by Zeleny (1973), weights inside the simplex and their strength by Ruchte and Grabocka
(2021), Kurin et al. (2022) and Xin et al. (2022), the limits of weights by Hu et al. (2023), and a smooth scalarization
for concave fronts by Lin et al. (2024).
"""

from __future__ import annotations

from paretomtl.paper.evidence.cells import cells
from paretomtl.paper.evidence.figures import FIGURES
from paretomtl.paper.evidence.verdicts import claims, facts
from paretomtl.paper.study import Study

STUDY = Study(cells, FIGURES, claims, facts, asks="What was asked, and what was measured")
