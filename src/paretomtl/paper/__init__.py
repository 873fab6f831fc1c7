"""The reproduction of the paper: its studies, their claims and their figures.

Importing this package loads no study: :data:`STUDIES` imports the module of a study lazily.
"""

from paretomtl.paper.registry import STUDIES, STUDY_BRIEFS, STUDY_TITLES

__all__ = ["STUDIES", "STUDY_BRIEFS", "STUDY_TITLES"]
