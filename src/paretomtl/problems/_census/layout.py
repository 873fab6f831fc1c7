"""The columns of Census-Income (KDD), the use of each, and where the files are published."""

from __future__ import annotations

from collections.abc import Mapping

from paretomtl.problems._data.download import PublishedGzip

COLUMNS = {
    "age": "number",
    "class_worker": "category",
    "det_ind_code": "category",
    "det_occ_code": "category",
    "education": "target",
    "wage_per_hour": "number",
    "hs_college": "category",
    "marital_stat": "target",
    "major_ind_code": "category",
    "major_occ_code": "category",
    "race": "category",
    "hisp_origin": "category",
    "sex": "category",
    "union_member": "category",
    "unemp_reason": "category",
    "full_or_part_emp": "category",
    "capital_gains": "number",
    "capital_losses": "number",
    "stock_dividends": "number",
    "tax_filer_stat": "category",
    "region_prev_res": "category",
    "state_prev_res": "category",
    "det_hh_fam_stat": "category",
    "det_hh_summ": "category",
    "instance_weight": "weight",
    "mig_chg_msa": "category",
    "mig_chg_reg": "category",
    "mig_move_reg": "category",
    "mig_same": "category",
    "mig_prev_sunbelt": "category",
    "num_emp": "number",
    "fam_under_18": "category",
    "country_father": "category",
    "country_mother": "category",
    "country_self": "category",
    "citizenship": "category",
    "own_or_self": "number",
    "vet_question": "category",
    "vet_benefits": "number",
    "weeks_worked": "number",
    "year": "category",
    "income_50k": "target",
}
"""The fields of a record in order, and the kind of each. The weight is the number of people it represents."""

NUMBERS = tuple(name for name, kind in COLUMNS.items() if kind == "number")
"""The columns that stay numbers: seven that count something, and two of codes from 0 to 2."""

CATEGORIES = tuple(name for name, kind in COLUMNS.items() if kind == "category")
"""The columns that become one-hot vectors."""

_COLLEGE = (
    "Associates degree-occup /vocational",
    "Associates degree-academic program",
    "Bachelors degree(BA AB BS)",
    "Masters degree(MA MS MEng MEd MSW MBA)",
    "Prof school degree (MD DDS DVM LLB JD)",
    "Doctorate degree(PhD EdD)",
)
_NO_COLLEGE = (
    "Children",
    "Less than 1st grade",
    "1st 2nd 3rd or 4th grade",
    "5th or 6th grade",
    "7th and 8th grade",
    "9th grade",
    "10th grade",
    "11th grade",
    "12th grade no diploma",
    "High school graduate",
    "Some college but no degree",
)
_MARRIED = (
    "Married-civilian spouse present",
    "Married-spouse absent",
    "Married-A F spouse present",
    "Separated",
    "Divorced",
    "Widowed",
)

TARGETS: Mapping[str, Mapping[str, int]] = {
    "income_50k": {"- 50000": 0, "50000+": 1},
    "education": {**dict.fromkeys(_NO_COLLEGE, 0), **dict.fromkeys(_COLLEGE, 1)},
    "marital_stat": {**dict.fromkeys(_MARRIED, 0), "Never married": 1},
}
"""The columns to predict, and the label of each of their values."""

UNKNOWN = 255
"""The code of a category that the training file does not have."""

CENSUS = PublishedGzip(
    name="Census-Income (KDD)",
    folder="census-income-kdd",
    md5={
        "census-income.data.gz": "887f4dc410a99bc332bddbb0a4195b88",
        "census-income.test.gz": "b82952d217858365c8e597827e3e5468",
    },
    mirrors=(
        "https://archive.ics.uci.edu/ml/machine-learning-databases/census-income-mld/",
        "http://kdd.ics.uci.edu/databases/census-income/",
    ),
)
"""The published set; its checksums are those of the unpacked text."""
