"""Whether a front is worth it: a short run that measures, and recommends in words what to do."""

from paretomtl.diagnosis._diagnose import diagnose
from paretomtl.diagnosis._result import Diagnosis
from paretomtl.diagnosis._rules import ONE_MODEL, Verdict
from paretomtl.diagnosis.proposal import Proposal

__all__ = ["ONE_MODEL", "Diagnosis", "Proposal", "Verdict", "diagnose"]
